import { meQuery } from './account.ts'
import { api, expectNoBody, unwrap } from './client.ts'
import { publicQuery, queries } from './query.ts'
import { withTabLock } from './session.ts'

/** Removes all cached data that is not public. */
export const forgetUser = (): void => queries.removeQueries({ predicate: ({ meta }) => meta !== publicQuery })

// Announces sign-ins and sign-outs to the other tabs.
const tabs = new BroadcastChannel('session')
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
const notifyTabs = (): void => tabs.postMessage('changed')

/** Loads the user again when another tab changes the session. */
export const followOtherTabs = (): void =>
  tabs.addEventListener('message', () => void queries.invalidateQueries({ queryKey: meQuery.queryKey }))

/** Calls a listener when the session may have changed in another tab. Returns a function that removes the listener. */
export function onSessionChange(listener: () => void): () => void {
  tabs.addEventListener('message', listener)
  addEventListener('focus', listener)
  return () => {
    tabs.removeEventListener('message', listener)
    removeEventListener('focus', listener)
  }
}

/** Credentials for a sign-in: a password, the code of a provider sign-in, or the refresh token from setup. */
export type SignInProof = { username: string; password: string } | { code: string } | { refreshToken: string }

/** Starts a session, whose response sets the cookies. Returns the notice for the user, if any. */
export async function openSession(proof: SignInProof): Promise<string | undefined> {
  const { notice } = await withTabLock(() => unwrap(api.POST('/api/v1/auth/session', { body: proof })))
  notifyTabs()
  return notice
}

/** Starts a session and removes the cached data of the previous user. */
export async function signIn(proof: SignInProof): Promise<string | undefined> {
  const notice = await openSession(proof)
  forgetUser()
  return notice
}

/** Ends the session and notifies the other tabs. Call `forgetUser` afterwards. */
export async function endSession(): Promise<void> {
  await withTabLock(() => expectNoBody(api.DELETE('/api/v1/auth/session')))
  notifyTabs()
}
