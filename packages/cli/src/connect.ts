import { type Api, authorised } from './api/client.ts'
import { credentials } from './session/credentials.ts'

// Time to retry without a response: until the server has responded once, for other commands, and while following a job.
const seconds = 8
const restartSeconds = 60
const followSeconds = 600

/** The API with the credentials of the user. Throws `CliError` if the user is not signed in. */
export const connect = (): Api => authorised(credentials(), { seconds, knownServerSeconds: restartSeconds })

/** Like `connect`, but keeps retrying while the platform is unavailable for some minutes. */
export const connectToFollow = (): Api => authorised(credentials(), { seconds, knownServerSeconds: followSeconds })
