import {
  type Client,
  EqualityFilter,
  ExtensibleFilter,
  type Filter,
  InvalidDNSyntaxError,
  NoSuchObjectError,
  OrFilter,
  ResultCodeError,
} from 'ldapts'
import { chunk } from '../../lib/async.ts'
import type { ExternalIdentity, ProviderRecord, ProviderSettings } from '../record.ts'
import { normaliseDn } from './distinguished-name.ts'

export type Groups = Pick<ExternalIdentity, 'groups' | 'missingGroups'>

interface Member {
  dn: string
  /** The user's value in the member attribute of groups: the DN, or the name. */
  member: string
}

const groupLimit = 1000
const levelLimit = 20
const membersPerSearch = 50
const pageSize = 500
/** The rule of Active Directory that resolves nested groups, and the capabilities of directories that have it. */
const inChainOid = '1.2.840.113556.1.4.1941'
const capabilityOids: readonly unknown[] = ['1.2.840.113556.1.4.800', '1.2.840.113556.1.4.1851']

class IncompleteGroups extends Error {
  override readonly name = 'IncompleteGroups'
}

/**
 * Checks only the mapped groups, so that neither limits of the directory nor ranges of values can truncate the result.
 * A recursive search needs the other groups, too.
 */
export async function groupsOf(
  client: Client,
  { settings, roleMappings }: Pick<ProviderRecord, 'settings' | 'roleMappings'>,
  user: Member,
): Promise<Groups> {
  if (roleMappings.length === 0) return { groups: [] }
  const mappedGroups = [...new Map(roleMappings.map(({ group }) => [normaliseDn(group), group])).values()]
  try {
    const isRecursive = settings.nestedGroups === 'recursive'
    return {
      groups: await (isRecursive
        ? searchGroups(client, settings, user)
        : confirmGroups(client, settings, user, mappedGroups)),
    }
  } catch (error) {
    if (error instanceof IncompleteGroups) return { groups: [], missingGroups: error.message }
    if (!(error instanceof ResultCodeError)) throw error
    const missingReason = `The directory returned the result code ${error.code} (${error.name}) to the search for groups.`
    return { groups: [], missingGroups: missingReason }
  }
}

async function confirmGroups(
  client: Client,
  settings: ProviderSettings,
  user: Member,
  groups: readonly string[],
): Promise<string[]> {
  if (settings.nestedGroups === 'matchingRule' && !(await hasMatchingRule(client)))
    throw new IncompleteGroups('The directory does not have the matching rule of Active Directory for nested groups.')
  const memberships = await Promise.all(groups.map((group) => isMember(client, settings, user, group)))
  return groups.filter((_, index) => memberships[index])
}

/** Directories without the matching rule ignore it, so users would appear to have no groups. */
export async function hasMatchingRule(client: Client): Promise<boolean> {
  const { searchEntries } = await client.search('', {
    scope: 'base',
    attributes: ['supportedCapabilities'],
    timeLimit: 5,
  })
  return searchEntries
    .flatMap(({ supportedCapabilities }) => supportedCapabilities ?? [])
    .some((capability) => capabilityOids.includes(capability))
}

async function isMember(
  client: Client,
  { groupSearchBase, groupMemberAttribute = 'member', nestedGroups }: ProviderSettings,
  { dn, member }: Member,
  group: string,
): Promise<boolean> {
  if (groupSearchBase !== undefined && !isBelow(group, groupSearchBase)) return false
  const filterOf = (attribute: string, value: string): Filter =>
    nestedGroups === 'matchingRule'
      ? new ExtensibleFilter({ matchType: attribute, rule: inChainOid, value })
      : new EqualityFilter({ attribute, value })
  const [base, filter] =
    groupSearchBase === undefined ? [dn, filterOf('memberOf', group)] : [group, filterOf(groupMemberAttribute, member)]
  try {
    const { searchEntries } = await client.search(base, { scope: 'base', filter, attributes: ['1.1'], timeLimit: 5 })
    return searchEntries.length > 0
  } catch (error) {
    if (error instanceof NoSuchObjectError || error instanceof InvalidDNSyntaxError) return false
    throw error
  }
}

function isBelow(dn: string, base: string): boolean {
  const [name, suffix] = [normaliseDn(dn), normaliseDn(base)]
  return name === suffix || name.endsWith(`,${suffix}`)
}

/** Returns the groups of the user, the groups of these groups, and so on. Follows each group once, so cycles end. */
async function searchGroups(
  client: Client,
  { groupSearchBase = '', groupMemberAttribute: attribute = 'member' }: ProviderSettings,
  { member }: Member,
): Promise<string[]> {
  const groups = new Map<string, string>()
  let members = [member]
  for (let level = 0; members.length > 0; level++) {
    if (level === levelLimit) throw new IncompleteGroups(`Groups are nested more than ${levelLimit} levels deep.`)
    const knownCount = groups.size
    for (const values of chunk(members, membersPerSearch)) {
      const filter = new OrFilter({ filters: values.map((value) => new EqualityFilter({ attribute, value })) })
      // Sets no `sizeLimit`, because the library does not report that a list was truncated at this limit.
      const options = { filter, attributes: ['1.1'], paged: { pageSize }, timeLimit: 5 }
      for await (const { searchEntries } of client.searchPaginated(groupSearchBase, options)) {
        for (const { dn } of searchEntries) groups.set(normaliseDn(dn), dn)
        if (groups.size > groupLimit) throw new IncompleteGroups(`The user is in more than ${groupLimit} groups.`)
      }
    }
    members = [...groups.values()].slice(knownCount)
  }
  return [...groups.values()]
}
