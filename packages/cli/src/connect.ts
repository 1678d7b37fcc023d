import { type Api, authorised } from './api/client.ts'
import { credentials } from './session/credentials.ts'

/** Seconds to retry without a response: at first, for a quick command, and while following a job. */
const seconds = 8
const restartSeconds = 60
const followSeconds = 600

/** The API as the signed-in user. Throws `CliError` without a session. */
export const connect = (): Api => authorised(credentials(), { seconds, knownServerSeconds: restartSeconds })

/** Like `connect`, but survives some minutes of downtime. */
export const connectToFollow = (): Api => authorised(credentials(), { seconds, knownServerSeconds: followSeconds })
