import { bootstrap } from '@platform/core/platform/bootstrap'
import { rotationIn } from '@platform/core/signing/rotation'
import { ensureKeys } from '@platform/core/signing/keys'
import { scheduled } from '@platform/http/schedule'

const start = scheduled('bootstrap', bootstrap)

/** A deployment starts the platform; an operator asks it for other keys, which is no start. */
export const handler = (event?: unknown) => {
  const rotation = rotationIn(event)
  return rotation === undefined ? start(event) : scheduled('key rotation', () => ensureKeys(rotation))()
}
