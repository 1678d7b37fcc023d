import type { ClusterType } from '@platform/contract/cluster'
import { type LabelChange, type Labels, labelLimit } from '@platform/contract/label'
import { matchesSelector, parseSelector } from '@platform/contract/selector'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create, getMany, type Item, patch, queryAll, type WriteItem } from '../db/table.ts'
import { PlatformError } from '../error.ts'

/**
 * Every existing cluster has one item with its labels. A selector reads the items of all clusters, so each
 * attribute is a compact string. Each attribute has its own writers, so that a relay that reports facts never collides
 * with a user who changes labels.
 */
type Attribute =
  /** Labels that users set. */
  | 'labels'
  /** The type and the site of the cluster. */
  | 'derived'
  /** Facts that the relay reported. */
  | 'reported'

const prefix = 'platform/'

/** Returns one `key=value` line for each label, sorted. The prefix `platform/` is omitted. */
const textOf = (labels: Labels): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key.startsWith(prefix) ? key.slice(prefix.length) : key}=${value}`)
    .toSorted()
    .join('\n')

function entriesOf(item: Item, attribute: Attribute): [string, string][] {
  const text = item[attribute]
  if (typeof text !== 'string' || text === '') return []
  return text.split('\n').map((line) => {
    const equals = line.indexOf('=')
    const key = line.slice(0, equals)
    const isPrefixOmitted = attribute !== 'labels' && !key.includes('/')
    return [isPrefixOmitted ? `${prefix}${key}` : key, line.slice(equals + 1)]
  })
}

const userLabelsOf = (item: Item): Labels => Object.fromEntries(entriesOf(item, 'labels'))

export const parseLabels = (item: Item | undefined): Labels =>
  item === undefined
    ? {}
    : Object.fromEntries([...entriesOf(item, 'labels'), ...entriesOf(item, 'derived'), ...entriesOf(item, 'reported')])

const derivedText = (type: ClusterType, siteId: string | undefined): string =>
  textOf({ 'platform/type': type, ...(siteId !== undefined && { 'platform/site': siteId }) })

interface ClusterOfLabels {
  organisationId: string
  id: string
  type: ClusterType
  siteId?: string | undefined
}

export const createLabelsWrite = (
  { organisationId, id, type, siteId }: ClusterOfLabels,
  labels: Labels,
  reportedLabels?: Labels,
): WriteItem =>
  create(keys.clusterLabels(organisationId, id), {
    labels: textOf(labels),
    derived: derivedText(type, siteId),
    ...(reportedLabels && { reported: textOf(reportedLabels) }),
  })

/**
 * Merges a change into the labels that were read, and derives labels again if `site` is present. Returns undefined if
 * nothing changes. Throws `limit_reached` for too many labels. The write fails if an attribute that it sets has
 * changed.
 */
export function changeLabelsWrite(
  { organisationId, id, type }: ClusterOfLabels,
  item: Item,
  { labels: change = {}, site }: { labels?: LabelChange | undefined; site?: { id: string | undefined } | undefined },
): WriteItem | undefined {
  const mergedText = textOf(mergeLabels(userLabelsOf(item), change))
  const newDerivedText = site && derivedText(type, site.id)
  const changedTexts = {
    ...(mergedText !== item['labels'] && { labels: mergedText }),
    ...(newDerivedText !== undefined && newDerivedText !== item['derived'] && { derived: newDerivedText }),
  }
  const attributes = Object.keys(changedTexts)
  if (attributes.length === 0) return undefined
  const condition = Object.fromEntries(attributes.map((name) => [name, unchangedCondition(item[name])]))
  return patch(keys.clusterLabels(organisationId, id), { set: changedTexts }, condition)
}

function mergeLabels(before: Labels, change: LabelChange): Labels {
  const mergedEntries = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(change)) {
    if (value === null) mergedEntries.delete(key)
    else mergedEntries.set(key, value)
  }
  if (mergedEntries.size > labelLimit && mergedEntries.size > Object.keys(before).length)
    throw new PlatformError(
      'limit_reached',
      `A cluster can have at most ${labelLimit} labels. Remove one of them, with null as its value.`,
      { limit: labelLimit, used: Object.keys(before).length },
    )
  return Object.fromEntries(mergedEntries)
}

/** Replaces all labels that are derived from reported facts. The write fails if the cluster was removed. */
export const reportedLabelsWrite = (organisationId: string, clusterId: string, reportedLabels: Labels): WriteItem =>
  patch(keys.clusterLabels(organisationId, clusterId), { set: { reported: textOf(reportedLabels) } })

/** Reads the labels of clusters, 100 per call. Removed clusters are omitted. */
export async function labelsOf(
  organisationId: string,
  clusterIds: readonly string[],
  options = { mayBeStale: true },
): Promise<Map<string, Labels>> {
  const items = await getMany(
    clusterIds.map((id) => keys.clusterLabels(organisationId, id)),
    options,
  )
  return new Map(clusterIds.flatMap((id, index) => (items[index] ? [[id, parseLabels(items[index])]] : [])))
}

/** Reads the labels of all clusters between two ids, which costs less than reading them one by one. */
export async function labelsBetween(
  organisationId: string,
  from: string | undefined,
  to: string | undefined,
): Promise<Map<string, Labels>> {
  if (from === undefined || to === undefined) return new Map()
  const { pk } = keys.clusterLabels(organisationId, '')
  const items = await queryAll({ pk, from, to, mayBeStale: true })
  return new Map(items.map((item) => [String(item['sk']), parseLabels(item)]))
}

export const matchesText = (selector: string | undefined, labels: Labels = {}): boolean =>
  selector === undefined || matchesSelector(parseSelector(selector), labels)

export function describeLabelChange(change: LabelChange): string {
  const texts = Object.entries(change).map(([key, value]) => (value === null ? `-${key}` : `${key}=${value}`))
  const text = texts.join(', ')
  return text.length <= maxDescriptionLength ? text : `${text.slice(0, maxDescriptionLength)}…`
}

/** Keeps the outbox record small. */
const maxDescriptionLength = 200
