import { type Client, type Entry, EqualityFilter } from 'ldapts'
import type { Confirmation } from '../../accounts/provider-check.ts'
import type { User } from '../../accounts/user.ts'
import { secretOf } from '../provider.ts'
import { hasPermanentId, type ProviderRecord, type ProviderSettings } from '../record.ts'
import { bindService, openDirectory, subjectOf, valuesOf } from './ldap.ts'

/** Searches by the permanent id, so that a renamed or moved entry is found. Without such an id, returns `unknown`. */
export async function confirmEntry(
  provider: ProviderRecord,
  { subject }: Pick<User, 'subject'>,
  signal: AbortSignal,
): Promise<Confirmation> {
  if (!hasPermanentId(subject)) return { status: 'unknown' }
  const secret = await secretOf(provider)
  using directory = await openDirectory(provider.settings, signal)
  await bindService(directory.client, provider.settings, secret)
  const entry = await entryOf(directory.client, provider.settings, subject)
  if (entry === undefined) return { status: 'withdrawn', reason: 'The directory has no entry of the user' }
  return isDisabled(entry)
    ? { status: 'withdrawn', reason: 'The directory has disabled the account' }
    : { status: 'confirmed' }
}

const stateAttributes = ['userAccountControl', 'nsAccountLock', 'loginDisabled', 'pwdAccountLockedTime']

async function entryOf(
  client: Client,
  { userSearchBase = '' }: ProviderSettings,
  subject: string,
): Promise<Entry | undefined> {
  const { searchEntries } = await client.search(userSearchBase, {
    filter: /^[0-9a-f]{32}$/.test(subject)
      ? new EqualityFilter({ attribute: 'objectGUID', value: Buffer.from(subject, 'hex') })
      : new EqualityFilter({ attribute: 'entryUUID', value: subject }),
    attributes: ['entryUUID', 'objectGUID', ...stateAttributes],
    explicitBufferAttributes: ['objectGUID'],
    sizeLimit: 2,
    timeLimit: 5,
  })
  return searchEntries.find((entry) => subjectOf(entry) === subject)
}

/**
 * Recognises disabled accounts of Active Directory, 389 Directory Server and eDirectory, and permanent locks of
 * OpenLDAP's password policy.
 */
function isDisabled(entry: Entry): boolean {
  const [userAccountControl] = valuesOf(entry, 'userAccountControl')
  const isTrue = (name: string) => valuesOf(entry, name).some((value) => value.toUpperCase() === 'TRUE')
  return (
    (Number(userAccountControl) & 2) !== 0 ||
    isTrue('nsAccountLock') ||
    isTrue('loginDisabled') ||
    valuesOf(entry, 'pwdAccountLockedTime').includes('000001010000Z')
  )
}
