import { type Credentials } from '@platform/contract/auth'
import { Client, type Entry, EqualityFilter, ResultCodeError } from 'ldapts'
import { fold } from '../../db/keys.ts'
import { secretOf } from '../provider.ts'
import { type ExternalIdentity, type ProviderRecord, type ProviderSecret, type ProviderSettings } from '../record.ts'
import { normalDn } from './distinguished-name.ts'
import { connectDirectory, upgradeToTls } from './socket.ts'
import { LdapMessages } from './wire.ts'
import { type OutboundOverrides } from '../../outbound/outbound.ts'

/** LDAP directories: authenticates a name and password, and reads the groups. */

/** More than any user has. */
const groupsAtMost = 1000

/** A client over a TLS connection, which closes on disposal or with the signal. */
async function openDirectory(settings: ProviderSettings, signal: AbortSignal, surroundings?: OutboundOverrides) {
  const socket = await connectDirectory(settings, signal, surroundings)
  try {
    return clientOn(new LdapMessages(await upgradeToTls(socket, settings)))
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** The client must not open connections: a reconnect would not be bound. */
export function clientOn(messages: LdapMessages): { client: Client } & Disposable {
  let isTaken = false
  const createConnection = () => {
    if (isTaken) throw new Error('The directory closed the connection.')
    isTaken = true
    return messages
  }
  // The client calls it and takes what it answers for a connection; it names the whole of `net.connect`.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const client = new Client({ url: 'ldap://directory', createConnection: createConnection as never })
  return { client, [Symbol.dispose]: () => void messages.destroy() }
}

/**
 * The identity of a name and password; undefined if the directory does not know the name or rejects the password.
 * Throws on any other error, and with the signal. One call to Secrets Manager.
 */
export async function authenticate(
  provider: ProviderRecord,
  { username, password }: Credentials,
  signal: AbortSignal,
  surroundings?: OutboundOverrides,
): Promise<ExternalIdentity | undefined> {
  if (!isAskable(username) || isEmptyToSome(password)) return undefined
  const { settings } = provider
  const secret = await secretOf(provider)
  using directory = await openDirectory(settings, signal, surroundings)
  await bindService(directory.client, settings, secret)
  const entry = await entryOf(directory.client, settings, username)
  if (entry === undefined) return undefined
  // On a separate connection: the group search needs the rights of the service account.
  using own = await openDirectory(settings, signal, surroundings)
  if (!(await accepts(own.client, entry.dn, password))) return undefined
  return identityOf(entry, settings, await groupsOf(directory.client, settings, entry))
}

// oxlint-disable-next-line no-control-regex
const isAskable = (username: string): boolean => username.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(username)

/**
 * A bind without a password succeeds for everyone (RFC 4513, 5.1.2). Some directories read up to the first NUL or
 * ignore zero-width characters.
 */
const isEmptyToSome = (password: string): boolean =>
  password.includes('\0') || /^[\s\p{Cc}\p{Default_Ignorable_Code_Point}]*$/u.test(password)

/** Binds as the service account. */
export async function bindService(
  client: Client,
  { bindDn = '' }: ProviderSettings,
  { bindPassword = '' }: ProviderSecret,
) {
  if (bindDn === '' || isEmptyToSome(bindPassword)) throw new Error('The provider has no service account.')
  await client.bind(bindDn, bindPassword)
}

const loginAttributeOf = ({ userLoginAttribute = 'uid' }: ProviderSettings): string => userLoginAttribute

/**
 * The single entry of a name. Directories also match other spellings, such as with spaces, which would allow more
 * password guesses.
 */
async function entryOf(client: Client, settings: ProviderSettings, username: string): Promise<Entry | undefined> {
  const attribute = loginAttributeOf(settings)
  const { searchEntries } = await client.search(settings.userSearchBase ?? '', {
    filter: new EqualityFilter({ attribute, value: username }),
    attributes: [attribute, 'mail', 'memberOf', 'entryUUID', 'objectGUID'],
    explicitBufferAttributes: ['objectGUID'],
    sizeLimit: 2,
    timeLimit: 5,
  })
  const [entry, another] = searchEntries
  if (entry === undefined || another !== undefined || !entry.dn.includes('=')) return undefined
  return valuesOf(entry, attribute).some((value) => fold(value) === fold(username)) ? entry : undefined
}

/** The text values of an attribute, case-insensitive. */
const valuesOf = (entry: Entry, attribute: string): string[] =>
  Object.entries(entry)
    .filter(([name]) => name.toLowerCase() === attribute.toLowerCase())
    .flatMap(([, value]) => value)
    .filter((value) => typeof value === 'string')

/**
 * Result codes of a rejected bind: constraint, no such entry, no password, wrong password, not allowed now, unwilling.
 */
const refusals: ReadonlySet<number> = new Set([19, 32, 48, 49, 50, 53])

async function accepts(client: Client, dn: string, password: string): Promise<boolean> {
  try {
    await client.bind(dn, password)
    return true
  } catch (error) {
    if (error instanceof ResultCodeError && refusals.has(error.code)) return false
    throw error
  }
}

/** By group search if configured, else from the entry's attribute. */
async function groupsOf(client: Client, settings: ProviderSettings, entry: Entry): Promise<string[]> {
  const { groupSearchBase, groupMemberAttribute: attribute = 'member' } = settings
  if (groupSearchBase === undefined) return valuesOf(entry, 'memberOf')
  // RFC 2307 groups list members by name.
  const isByName = attribute.toLowerCase() === 'memberuid'
  const [value = entry.dn] = isByName ? valuesOf(entry, loginAttributeOf(settings)) : []
  const { searchEntries } = await client.search(groupSearchBase, {
    filter: new EqualityFilter({ attribute, value }),
    attributes: ['1.1'],
    sizeLimit: groupsAtMost,
    timeLimit: 5,
  })
  return searchEntries.map(({ dn }) => dn)
}

function identityOf(entry: Entry, settings: ProviderSettings, groups: string[]): ExternalIdentity {
  const [uuid] = valuesOf(entry, 'entryUUID')
  const guid = [entry['objectGUID']].flat().find((value) => Buffer.isBuffer(value) && value.length > 0)
  const subject = uuid ?? (Buffer.isBuffer(guid) ? guid.toString('hex') : normalDn(entry.dn))
  const [username = '', [email = '']] = [valuesOf(entry, loginAttributeOf(settings))[0], valuesOf(entry, 'mail')]
  return { subject, username, email, groups }
}
