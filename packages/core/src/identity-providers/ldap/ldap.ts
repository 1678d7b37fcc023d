import type { Credentials } from '@platform/contract/auth'
import { Client, type Entry, EqualityFilter, InvalidCredentialsError, ResultCodeError } from 'ldapts'
import { fold } from '../../db/keys.ts'
import { secretOf } from '../provider.ts'
import type { ExternalIdentity, ProviderRecord, ProviderSecret, ProviderSettings } from '../record.ts'
import { normaliseDn } from './distinguished-name.ts'
import { groupsOf, type Groups } from './groups.ts'
import { connectDirectory, upgradeToTls } from './socket.ts'
import { LdapMessages } from './wire.ts'
import type { OutboundOverrides } from '../../outbound/outbound.ts'

export async function openDirectory(settings: ProviderSettings, signal: AbortSignal, overrides?: OutboundOverrides) {
  const socket = await connectDirectory(settings, signal, overrides)
  try {
    return clientOn(new LdapMessages(await upgradeToTls(socket, settings)))
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Prevents the client from reconnecting, because the new connection would not be bound. */
export function clientOn(messages: LdapMessages): { client: Client } & Disposable {
  let isUsed = false
  const createConnection = () => {
    if (isUsed) throw new Error('The directory closed the connection.')
    isUsed = true
    return messages
  }
  // The client only calls the function, but its type has all overloads of `net.connect`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const client = new Client({ url: 'ldap://directory', createConnection: createConnection as never })
  return { client, [Symbol.dispose]: () => void messages.destroy() }
}

export interface Lookup extends Credentials {
  /** Searches for the name only; does not send the password. */
  isLookupOnly?: true
}

/** Returns undefined for a lookup, or if the name and password are not accepted; throws on any other error. */
export async function authenticate(
  provider: ProviderRecord,
  { username, password, isLookupOnly }: Lookup,
  signal: AbortSignal,
  overrides?: OutboundOverrides,
): Promise<ExternalIdentity | undefined> {
  if (!isValidUsername(username) || isBlank(password)) return undefined
  const { settings } = provider
  const secret = await secretOf(provider)
  using directory = await openDirectory(settings, signal, overrides)
  await bindService(directory.client, settings, secret)
  const entry = await entryOf(directory.client, settings, username)
  if (entry === undefined || isLookupOnly) return undefined
  // A separate connection keeps the first one bound as the service account for the group search.
  using userDirectory = await openDirectory(settings, signal, overrides)
  if (!(await verifyPassword(userDirectory.client, entry.dn, password))) return undefined
  const attribute = settings.groupMemberAttribute?.toLowerCase()
  // RFC 2307 groups list members by name.
  const [member = entry.dn] = attribute === 'memberuid' ? valuesOf(entry, loginAttributeOf(settings)) : []
  return identityOf(entry, settings, await groupsOf(directory.client, provider, { dn: entry.dn, member }))
}

// oxlint-disable-next-line no-control-regex
const controlCharacters = /[\u0000-\u001f\u007f]/
const isValidUsername = (username: string): boolean => username.isWellFormed() && !controlCharacters.test(username)

/**
 * A bind without a password succeeds as anonymous (RFC 4513, 5.1.2). Some directories truncate passwords at NUL or
 * ignore zero-width characters.
 */
const isBlank = (password: string): boolean =>
  password.includes('\0') || /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}]*$/u.test(password)

export async function bindService(
  client: Client,
  { bindDn = '' }: ProviderSettings,
  { bindPassword = '' }: ProviderSecret,
) {
  if (bindDn === '' || isBlank(bindPassword)) throw new InvalidCredentialsError('The provider has no service account.')
  await client.bind(bindDn, bindPassword)
}

const loginAttributeOf = ({ userLoginAttribute = 'uid' }: ProviderSettings): string => userLoginAttribute

/**
 * Returns undefined unless exactly one entry has this name. Directories also match other spellings, which are rejected
 * because each would allow more guesses.
 */
async function entryOf(client: Client, settings: ProviderSettings, username: string): Promise<Entry | undefined> {
  const attribute = loginAttributeOf(settings)
  const { searchEntries } = await client.search(settings.userSearchBase ?? '', {
    filter: new EqualityFilter({ attribute, value: username }),
    attributes: [attribute, 'displayName', 'cn', 'mail', 'entryUUID', 'objectGUID'],
    explicitBufferAttributes: ['objectGUID'],
    sizeLimit: 2,
    timeLimit: 5,
  })
  const [entry, duplicate] = searchEntries
  if (entry === undefined || duplicate !== undefined || !entry.dn.includes('=')) return undefined
  return valuesOf(entry, attribute).some((value) => fold(value) === fold(username)) ? entry : undefined
}

export const valuesOf = (entry: Entry, attribute: string): string[] =>
  Object.entries(entry)
    .filter(([name]) => name.toLowerCase() === attribute.toLowerCase())
    .flatMap(([, value]) => value)
    .filter((value) => typeof value === 'string')

/**
 * Result codes of a rejected bind: constraint violation, no such object, inappropriate authentication, invalid
 * credentials, insufficient access rights, unwilling to perform.
 */
const rejectionCodes: ReadonlySet<number> = new Set([19, 32, 48, 49, 50, 53])

async function verifyPassword(client: Client, dn: string, password: string): Promise<boolean> {
  try {
    await client.bind(dn, password)
    return true
  } catch (error) {
    if (error instanceof ResultCodeError && rejectionCodes.has(error.code)) return false
    throw error
  }
}

/** Returns the permanent id of the entry, or its distinguished name if it has none. */
export function subjectOf(entry: Entry): string {
  const [uuid] = valuesOf(entry, 'entryUUID')
  const guid = [entry['objectGUID']].flat().find((value) => Buffer.isBuffer(value) && value.length > 0)
  return uuid ?? (Buffer.isBuffer(guid) ? guid.toString('hex') : normaliseDn(entry.dn))
}

function identityOf(entry: Entry, settings: ProviderSettings, groups: Groups): ExternalIdentity {
  const [username = '', [email = '']] = [valuesOf(entry, loginAttributeOf(settings))[0], valuesOf(entry, 'mail')]
  const displayName = valuesOf(entry, 'displayName')[0] ?? valuesOf(entry, 'cn')[0]
  return { subject: subjectOf(entry), username, displayName, email, ...groups }
}
