import { beforeAll, expect, test } from 'vitest'
import * as ApiToken from '@platform/core/accounts/api-token'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as Enrollment from '@platform/core/relays/enrollment'
import { newId } from '@platform/core/id'
import { changePassword } from '@platform/core/accounts/change-password'
import { signOut } from '@platform/core/accounts/session'
import { ensureKeys } from '@platform/core/signing/keys'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import * as Webhook from '@platform/core/webhooks/webhook'
import { isLong } from '../../support/long.ts'
import {
  createColleague,
  userRequest,
  password,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  newOrigin,
  createTenantAdministrator,
} from '../../support/fixtures.ts'

/** Caller that stands no more × operation that gives access which outlives an access token. */

const hook = { url: 'https://hooks.example.com/platform', events: ['*'] }
let tenant: SignedInUser
let made: Record<'userId' | 'clusterId' | 'webhookId', string>
beforeAll(async () => {
  await ensureKeys()
  tenant = await createTenantAdministrator((await setUpPlatform()).caller)
  const { caller } = tenant
  made = {
    userId: (await UserAdmin.create(caller, userRequest(['Viewer']))).id,
    clusterId: (await Cluster.register(caller, { name: 'theirs', type: 'Hypervisor' })).id,
    webhookId: (await Webhook.create(caller, hook)).id,
  }
})

const demoted = async (): Promise<SignedInUser> => {
  const person = await createColleague(tenant.caller, 'OrgAdmin')
  await UserAdmin.update(tenant.caller, person.id, { roles: ['Viewer'] })
  return person
}
const removed = async (): Promise<SignedInUser> => {
  const person = await createColleague(tenant.caller, 'OrgAdmin')
  await UserAdmin.remove(tenant.caller, person.id)
  return person
}
const signedOut = async (): Promise<SignedInUser> => {
  const person = await createColleague(tenant.caller, 'OrgAdmin')
  await signOut(person.caller)
  return person
}
const endedWithOthers = async (): Promise<SignedInUser> => {
  const person = await createColleague(tenant.caller, 'OrgAdmin')
  await UserAdmin.endUserSessions(tenant.caller, person.id)
  return person
}

const whoever = { demoted, removed, 'signed out': signedOut, 'whose sessions were ended': endedWithOthers }

const operations: Record<string, (caller: Caller) => Promise<unknown>> = {
  'create a user': (caller) => UserAdmin.create(caller, userRequest(['OrgAdmin'])),
  'change roles': (caller) => UserAdmin.update(caller, made.userId, { roles: ['OrgAdmin'] }),
  'reset a password': (caller) => UserAdmin.update(caller, made.userId, { password: 'mine from now' }),
  'remove a user': (caller) => UserAdmin.remove(caller, made.userId),
  'end sessions': (caller) => UserAdmin.endUserSessions(caller, made.userId),
  'revoke API tokens': (caller) => UserAdmin.revokeTokens(caller, made.userId),
  'create an API token': (caller) => ApiToken.create(caller, { name: 'mine', permissions: ['users:admin'] }),
  'register a cluster': (caller) => Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' }),
  'issue an enrollment token': (caller) => Enrollment.issue(caller, made.clusterId),
  'create a webhook': (caller) => Webhook.create(caller, hook),
  'change a webhook': (caller) => Webhook.change(caller, made.webhookId, { url: 'https://mine.example.com/' }),
}

/** What the demoted may still have: only what is made with too much is refused, and says so. */
const codeOf = (who: string, operation: string): string => {
  if (who !== 'demoted') return 'unauthenticated'
  return operation === 'create an API token' ? 'validation_failed' : 'forbidden'
}

/** By default each operation meets one of them, and each of them some operations. */
const cells = Object.keys(operations).flatMap((operation, index) =>
  Object.keys(whoever)
    .filter((_, at, all) => isLong || index % all.length === at)
    .map((who) => [who, operation]),
)

test.each(cells)('an administrator %s does not %s with the old access token', async (who = '', operation = '') => {
  const { caller } = await whoever[who as keyof typeof whoever]()
  expect(await errorCodeOf(operations[operation]!(caller))).toBe(codeOf(who, operation))
})

test.each(['removed', 'signed out', 'whose sessions were ended'] as const)(
  'a user %s does not change the own password with the old access token',
  async (who) => {
    const { caller } = await whoever[who]()
    const request = { currentPassword: password, newPassword: 'another long sentence' }
    expect(await errorCodeOf(changePassword(caller, request, newOrigin()))).toBe('unauthenticated')
  },
)

test.each(Object.keys(operations))('an administrator that stands can %s', async (operation) => {
  const { caller } = await createColleague(tenant.caller, 'OrgAdmin')
  expect(await errorCodeOf(operations[operation]!(caller))).toBe('no error')
  if (operation === 'remove a user') made.userId = (await UserAdmin.create(tenant.caller, userRequest(['Viewer']))).id
})
