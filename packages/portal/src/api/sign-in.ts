import { configurationQuery } from './account.ts'
import { api, tell } from './client.ts'
import { queries } from './query.ts'

/** Forgets all that was seen but what anybody may know. */
export const forgetUser = (): void =>
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== configurationQuery.queryKey[0] })

/** How one signs in: by name and password, by the code that a provider's sign-in came back with, or as setup has left one. */
export type Proof = { username: string; password: string } | { code: string } | { refreshToken: string }

/** Opens a session: its cookies are set by the answer. Forgets whatever was known before. */
export async function signIn(proof: Proof): Promise<void> {
  await tell(api.POST('/api/v1/auth/session', { body: proof }))
  forgetUser()
}

/** Ends the session here and on the server, and forgets all that was seen. */
export async function signOut(): Promise<void> {
  await tell(api.DELETE('/api/v1/auth/session'))
  forgetUser()
}
