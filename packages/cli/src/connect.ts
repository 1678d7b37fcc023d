import { type Api, authorised } from './api/client.ts'
import { credentials } from './session/credentials.ts'

/** Seconds to try again where nobody answers: at first, for a quick command, and for one that follows a job. */
const seconds = 8
const restartSeconds = 60
const followSeconds = 600

/** The platform as the signed-in user. Throws `Failure` where nobody is signed in. */
export const connect = (): Api => authorised(credentials(), { seconds, onceKnownSeconds: restartSeconds })

/** The same for a command that follows a job: it goes on after the platform was away for some minutes. */
export const connectToFollow = (): Api => authorised(credentials(), { seconds, onceKnownSeconds: followSeconds })
