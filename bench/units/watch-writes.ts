import { client } from '@platform/core/db/client'
import { config } from '@platform/core/config'
import type { AttributeValue, Item } from '@platform/local/emulators/dynamodb/types'
import { askStore } from './ask-store.ts'
import { addKinds, type Partitions, partitionsOf } from './partitions.ts'

/** What the writes since the last look took, by kinds of partitions. */
export interface Watched {
  partitions: Partitions
  /** Of all write units those of indexes. */
  indexUnits: number
  /** Read units that looking at the items took: nobody else asked for those. */
  lookedUnits: number
}

interface Target {
  key: Item
  factor: number
}

const nothing = (): Watched => ({ partitions: {}, indexUnits: 0, lookedUnits: 0 })
let watched = nothing()

/** What has been noted, and a new start. */
export function takeWatched(): Watched {
  const taken = watched
  watched = nothing()
  return taken
}

/** Looks at every item before and after this process writes it. */
export function watchWrites(): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (command) => {
        const targets = targetsOf(commandName, command.input)
        if (targets.length === 0) return next(command)
        const before = await lookAt(targets)
        const result = await next(command)
        const after = await lookAt(targets)
        for (const [index, { factor }] of targets.entries())
          note({ before: before[index], after: after[index], factor })
        return result
      },
    { step: 'initialize', name: 'unitsWatchWrites' },
  )
}

function note(write: Parameters<typeof partitionsOf>[0]): void {
  const partitions = partitionsOf(write)
  addKinds(watched.partitions, partitions)
  for (const [partition, units] of Object.entries(partitions)) {
    if (/^(gsi\d|due) /.test(partition)) watched.indexUnits += units
  }
}

/** The key of an item as the store spells it, whether it comes from there or from a client that spells it plainly. */
const keyOf = ({ pk, sk }: Record<string, unknown>): Item => ({ pk: spelled(pk), sk: spelled(sk) })
const spelled = (value: any): AttributeValue => (typeof value === 'string' ? { S: value } : value)

/** The items that a command writes, and how often it pays for each. */
function targetsOf(name: string | undefined, input: any): Target[] {
  if (name === 'UpdateItemCommand' || name === 'DeleteItemCommand') return [{ key: keyOf(input.Key), factor: 1 }]
  if (name === 'PutItemCommand') return [{ key: keyOf(input.Item), factor: 1 }]
  if (name === 'BatchWriteItemCommand') {
    const entries: any[] = Object.values(input.RequestItems).flat()
    return entries.map(({ PutRequest, DeleteRequest }) => ({
      key: keyOf(PutRequest?.Item ?? DeleteRequest.Key),
      factor: 1,
    }))
  }
  if (name !== 'TransactWriteItemsCommand') return []
  return input.TransactItems.map((entry: any) => {
    const action: any = Object.values(entry).find((value) => value !== undefined)
    return { key: keyOf(action.Item ?? action.Key), factor: 2 }
  })
}

/** The items as they are, by requests that no meter of this process sees. */
async function lookAt(targets: readonly Target[]): Promise<(Item | undefined)[]> {
  const Keys = targets.map(({ key }) => key)
  const found = new Map<string, Item>()
  for (let wanted: Item[] = Keys; wanted.length > 0;) {
    const request = { RequestItems: { [config.PLAT_TABLE]: { Keys: wanted } }, ReturnConsumedCapacity: 'TOTAL' }
    const answer = await askStore('BatchGetItem', request)
    for (const item of answer.Responses[config.PLAT_TABLE] ?? []) found.set(JSON.stringify(keyOf(item)), item)
    for (const { CapacityUnits } of answer.ConsumedCapacity) watched.lookedUnits += CapacityUnits
    wanted = answer.UnprocessedKeys?.[config.PLAT_TABLE]?.Keys ?? []
  }
  return Keys.map((key) => found.get(JSON.stringify(key)))
}
