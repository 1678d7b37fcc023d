import { type FactsReport, NodeFacts } from '@platform/contract/facts'
import { type Labels, toLabelValue } from '@platform/contract/label'
import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { compress, decompress } from '../lib/compression.ts'
import { log } from '../log.ts'

/** The facts of a cluster's nodes are stored with its nodes, compressed, because nodes often have equal facts. */

const StoredFacts = z.record(z.string(), NodeFacts)
type StoredFacts = z.infer<typeof StoredFacts>

/** The item also contains the nodes, and an item has at most 400 KB. */
const maxStoredBytes = 49_152

export function parseFacts(item: Item | undefined): { relayVersion?: string; facts: StoredFacts } {
  const { relayVersion, facts } = item ?? {}
  return {
    ...(typeof relayVersion === 'string' && { relayVersion }),
    facts: facts === undefined ? {} : StoredFacts.parse(JSON.parse(decompress(facts))),
  }
}

/** Returns attributes of the item of nodes. While the facts do not fit, drops those of the last half of the nodes. */
export function factsAttributes({ relayVersion, nodes }: FactsReport, nodeIds: ReadonlySet<string>): Item {
  let keptNodes = nodes.filter(({ id }) => nodeIds.has(id)).map(({ id, ...facts }) => [id, facts] as const)
  for (;;) {
    const facts = compress(JSON.stringify(Object.fromEntries(keptNodes)))
    if (facts.length <= maxStoredBytes) return { relayVersion, facts }
    keptNodes = keptNodes.slice(0, Math.floor(keptNodes.length / 2))
    log('warn', 'The facts of a cluster are too long; those of some nodes are dropped', { kept: keptNodes.length })
  }
}

/** Derives labels from facts. If nodes differ in `os` or `arch`, the value of that label is `mixed`. */
export const factLabels = ({ relayVersion, custom, nodes }: FactsReport): Labels => ({
  ...valueLabel('platform/relay-version', [relayVersion]),
  ...valueLabel(
    'platform/os',
    nodes.map(({ os }) => os),
  ),
  ...valueLabel(
    'platform/arch',
    nodes.map(({ arch }) => arch),
  ),
  ...Object.fromEntries(Object.entries(custom).map(([key, value]) => [`facts/${key}`, toLabelValue(value)])),
})

function valueLabel(key: string, foundValues: readonly (string | undefined)[]): Labels {
  const values = new Set(foundValues.filter((value) => value !== undefined).map(toLabelValue))
  const [value] = values
  return value === undefined ? {} : { [key]: values.size > 1 ? 'mixed' : value }
}
