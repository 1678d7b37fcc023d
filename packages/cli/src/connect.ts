import { type Api, authorisedClient } from './api/client.ts'
import { credentials } from './session/credentials.ts'

// How long to retry: `retrySeconds` until the first response, then `restartSeconds`, or `followSeconds` while following
// a job.
const retrySeconds = 8
const restartSeconds = 60
const followSeconds = 600

/** Returns a client with the credentials of the user. Throws `CliError` if the user is not signed in. */
export const connect = (): Api => authorisedClient(credentials(), { retrySeconds, knownServerSeconds: restartSeconds })

/** Like `connect`, but after a first response, retries for up to ten minutes while the platform is unavailable. */
export const connectToFollow = (): Api =>
  authorisedClient(credentials(), { retrySeconds, knownServerSeconds: followSeconds })
