import { meQuery } from './account.ts'
import { api, expectNoBody } from './client.ts'
import { publicQuery, queries } from './query.ts'
import { withTabLock } from './session.ts'

/** Forgets all that was seen but what anybody may know. */
export const forgetUser = (): void => queries.removeQueries({ predicate: ({ meta }) => meta !== publicQuery })

/** Where tabs tell each other that they have signed in or out. */
const tabs = new BroadcastChannel('session')
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
const tellTabs = (): void => tabs.postMessage('changed')

/** What another tab does with the session is seen here at once: who is signed in now, if anybody, is asked for. */
export const followOtherTabs = (): void =>
  tabs.addEventListener('message', () => void queries.invalidateQueries({ queryKey: meQuery.queryKey }))

/** How one signs in: by name and password, by the code that a provider's sign-in came back with, or as setup has left one. */
export type Proof = { username: string; password: string } | { code: string } | { refreshToken: string }

/** Opens a session: its cookies are set by the answer. Forgets whatever was known before. */
export async function signIn(proof: Proof): Promise<void> {
  await withTabLock(() => expectNoBody(api.POST('/api/v1/auth/session', { body: proof })))
  forgetUser()
  tellTabs()
}

/** Ends the session, in all tabs and on the server. What was seen is still to be forgotten. */
export async function endSession(): Promise<void> {
  await withTabLock(() => expectNoBody(api.DELETE('/api/v1/auth/session')))
  tellTabs()
}
