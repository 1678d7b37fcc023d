import type { PasswordChange } from '@platform/contract/user'
import type { Caller, Origin } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import {
  acceptedWrites,
  type Attempt,
  beginAttempt,
  comparePassword,
  type Credential,
  failAccepted,
  renewCredential,
} from './credential.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { orThrow, patch, remove } from '../db/table.ts'
import { platformError } from '../error.ts'
import { hashPassword } from './password.ts'
import { checkNewPassword } from './password-rules.ts'
import { reauthorize } from './current-rights.ts'
import { timeMsOf } from '../id.ts'
import { endSessions, isLocal, type User, userUnchanged } from './user.ts'

/**
 * A wrong current password counts as a failed sign-in, which limits guessing with a stolen session. A concurrent change
 * of the user's record causes a retry, so that an API token created at the same time is also revoked.
 */
export async function changePassword(caller: Caller, request: PasswordChange, origin: Origin): Promise<void> {
  let attempt: Attempt | undefined
  let credential: Credential | undefined
  let newHash: string | undefined
  await retryOnConflict(async () => {
    const [{ user }, platform] = await reauthorize(caller, [], [keys.platform()])
    if (!isLocal(user)) throw platformError('account_not_local')
    const { username } = user
    const { newPassword: password } = request
    await checkNewPassword({ field: 'newPassword', password, username, platformName: platform?.['platformName'] })
    const proof = { ...origin, sessionId: caller.sessionId }
    attempt ??= await beginAttempt(username, proof)
    credential ??= await comparePassword(attempt, request.currentPassword)
    newHash ??= await hashPassword(password, keys.username(username).pk)
    return tryChange(caller, user, { attempt, passwordHash: credential.passwordHash, newHash, request })
  }).catch((error: unknown) => {
    if (attempt !== undefined && credential !== undefined) return failAccepted(attempt, error)
    throw error
  })
}

interface Renewal {
  attempt: Attempt
  passwordHash: string | undefined
  newHash: string
  request: PasswordChange
}

async function tryChange(
  caller: Caller,
  user: User,
  { attempt, passwordHash, newHash, request: { revokeTokensSince } }: Renewal,
): Promise<true | undefined> {
  const { organisationId, userId, sessionId } = caller
  const sinceMs = revokeTokensSince === undefined ? Infinity : Date.parse(revokeTokensSince)
  const revokedIds = [...user.tokenIds].filter((tokenId) => timeMsOf(tokenId) >= sinceMs)
  const unchangedCredential = { passwordHash: { is: passwordHash }, epoch: unchangedCondition(user.epoch || undefined) }
  const change = {
    ...endSessions(sessionId === '' ? undefined : sessionId),
    ...(revokedIds.length > 0 && { drop: { tokenIds: new Set(revokedIds) } }),
  }
  const failure = await commit(caller, {
    writes: [
      patch(keys.user(organisationId, userId), change, userUnchanged(user)),
      orThrow(renewCredential(user, newHash, unchangedCredential), 'conflict'),
      ...revokedIds.map((tokenId) => remove(keys.apiToken(tokenId))),
      ...acceptedWrites(attempt),
    ],
    audit: {
      action: 'password.change',
      resource: userId,
      detail: revokeTokensSince === undefined ? '' : `${revokedIds.length} API tokens revoked`,
    },
  })
  return failure === undefined ? true : undefined
}
