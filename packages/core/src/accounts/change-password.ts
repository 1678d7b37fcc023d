import { type PasswordChange } from '@platform/contract/user'
import { type Caller, type Origin } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { checkPassword, renewCredential } from './credential.ts'
import { unchanged } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { orThrow, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { hashPassword } from './password.ts'
import { reauthorize } from './current-rights.ts'
import { endSessions, isLocal } from './user.ts'

/** A wrong current password counts as a failed sign-in, which limits guessing with a stolen session. */
export async function changePassword(caller: Caller, request: PasswordChange, origin: Origin): Promise<void> {
  const { organisationId, userId, sessionId } = caller
  const [{ user }] = await reauthorize(caller, [])
  if (!isLocal(user)) throw platformError('account_not_local')
  const { username, epoch } = user
  const { passwordHash } = await checkPassword({ username, password: request.currentPassword }, origin)
  const newHash = await hashPassword(request.newPassword, keys.username(username).pk)
  const isUnchanged = { passwordHash: { is: passwordHash }, epoch: unchanged(epoch || undefined) }
  const sessionChange = endSessions(sessionId === '' ? undefined : sessionId)
  await commit(caller, {
    writes: [
      orThrow(renewCredential(user, newHash, isUnchanged), 'conflict'),
      orThrow(patch(keys.user(organisationId, userId), sessionChange), 'unauthenticated'),
    ],
    audit: { action: 'password.change', resource: userId },
  })
}
