import { type Api, authorised } from './api/client.ts'
import { credentials } from './session/credentials.ts'

// How long to retry without a response: `seconds` until the first response, then `restartSeconds`, or `followSeconds`
// while following a job.
const seconds = 8
const restartSeconds = 60
const followSeconds = 600

/** The API with the credentials of the user. Throws `CliError` if the user is not signed in. */
export const connect = (): Api => authorised(credentials(), { seconds, knownServerSeconds: restartSeconds })

/** Like `connect`, but retries for up to ten minutes while the platform is unavailable. */
export const connectToFollow = (): Api => authorised(credentials(), { seconds, knownServerSeconds: followSeconds })
