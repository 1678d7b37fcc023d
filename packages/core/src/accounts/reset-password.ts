import * as z from 'zod'
import { system } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { get, orThrow, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { commit } from '../outbox/commit.ts'
import { Credential, renewCredential } from './credential.ts'
import { tokenRemovals } from './manage-users.ts'
import { hashPassword } from './password.ts'
import { endSessions, find, isLocal, type User, userUnchanged } from './user.ts'

const ResetRequest = z.object({ resetPassword: z.string() })

/** Returns the user name in the event `{"resetPassword": "…"}` of an operator; undefined for other events. */
export const passwordResetIn = (event: unknown): string | undefined => ResetRequest.safeParse(event).data?.resetPassword

/** Sets a random password. Operators use this function if no administrator can sign in. */
export async function resetPassword(username: string): Promise<{ username: string; password: string }> {
  const password = newSecret().slice(0, 24)
  const passwordHash = await hashPassword(password, keys.username(username).pk)
  return retryOnConflict(async () => {
    const user = await localUser(username)
    return (await tryReset(user, passwordHash)) ? { username: user.username, password } : undefined
  })
}

async function localUser(username: string): Promise<User> {
  const credential = Credential.safeParse(await get(keys.username(username))).data
  const user = credential && (await find(credential.organisationId, credential.userId))
  if (user === undefined) throw platformError('user_not_found')
  if (!isLocal(user)) throw platformError('account_not_local')
  return user
}

async function tryReset(user: User, passwordHash: string): Promise<boolean> {
  const { organisationId, id, username } = user
  const { remove = [], ...sessionChange } = endSessions()
  const change = { ...sessionChange, remove: [...remove, 'tokenIds'] }
  const failure = await commit(system(organisationId), {
    writes: [
      patch(keys.user(organisationId, id), change, userUnchanged(user)),
      orThrow(renewCredential(user, passwordHash), 'conflict'),
      ...tokenRemovals(user),
    ],
    audit: { action: 'user.reset_password', resource: id, detail: `${username}, by the operator of the platform` },
    events: [{ name: 'user.password_reset', subject: id, data: { userId: id, username } }],
    // The caller, the bootstrap function, sends no queue messages; the sweep starts the projections.
    isEnqueued: true,
  })
  return failure === undefined
}
