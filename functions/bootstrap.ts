import { bootstrap } from '@platform/core/platform/bootstrap'
import { rotationIn, ensureKeys } from '@platform/core/signing/keys'
import { scheduled } from '@platform/http/schedule'

const start = scheduled('bootstrap', bootstrap)

/** A deployment runs bootstrap; an operator's event may request a key rotation instead. */
export const handler = (event?: unknown) => {
  const rotation = rotationIn(event)
  return rotation === undefined ? start(event) : scheduled('key rotation', () => ensureKeys(rotation))()
}
