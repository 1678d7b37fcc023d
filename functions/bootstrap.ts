import { passwordResetIn, resetPassword } from '@platform/core/accounts/reset-password'
import { bootstrap } from '@platform/core/platform/bootstrap'
import { rotationIn } from '@platform/core/signing/keys'
import { onSchedule } from '@platform/http/schedule'

const runBootstrap = onSchedule('bootstrap', bootstrap)

/** A deployment runs bootstrap; an operator's event may request a key rotation or a new password instead. */
export const handler = (event?: unknown) => {
  const username = passwordResetIn(event)
  if (username !== undefined) return resetPassword(username)
  const rotation = rotationIn(event)
  return rotation === undefined ? runBootstrap(event) : onSchedule('key rotation', rotation)()
}
