import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient, PutCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { handler as clusters } from '../../../functions/clusters.ts'
import { send } from '../../support/request.ts'
import { startHandlers } from '../support/handlers.ts'
import { metered, storeCallsOf } from '../support/meter.ts'
import { atMost, hope, type Section } from '../support/section.ts'
import { range, ratios, shuffled, spread } from '../support/statistics.ts'
import { getting, newToken } from '../support/tenant.ts'
import { clientSettings, startWorld, tableName, type World } from '../support/world.ts'
import { type Fleet, writeFleet } from './fleet.ts'

const smallCount = 100
const rounds = 12
const requests = 60

/** Whether reading one cluster takes longer in a large table than in a small one, each in stand-ins of its own. */
export async function measureGrowth(large: World, largeFleet: Fleet): Promise<Section> {
  await using small = await startWorld()
  await copyKeys(small)
  const smallFleet = await writeFleet(small.environment, smallCount)
  await using inSmall = startHandlers(small.environment)
  await using inLarge = startHandlers(large.environment)
  const sides = {
    small: { handlers: inSmall, ...(await targetsOf(smallFleet)), times: [] as number[] },
    large: { handlers: inLarge, ...(await targetsOf(largeFleet)), times: [] as number[] },
  }
  for (const round of range(rounds)) {
    for (const { handlers, next, times } of shuffled(Object.values(sides))) {
      const { wallMs } = await handlers.run('functions/clusters.ts', range(requests).map(next))
      // The first round warms up.
      if (round > 0) times.push(spread(wallMs).median)
    }
  }
  const { usage } = await metered(() => send(clusters, sides.large.next()))
  const ratio = ratios(sides.large.times, sides.small.times)
  return {
    title: 'One cluster among many',
    columns: ['clusters in the table', 'ms', 'ratio, median', 'min', 'max', 'calls', 'read units'],
    rows: [
      [smallCount, spread(sides.small.times).median, 1, '', '', '', ''],
      [
        largeFleet.count,
        spread(sides.large.times).median,
        ratio.median,
        ratio.min,
        ratio.max,
        storeCallsOf(usage),
        usage.readUnits,
      ],
    ],
    goals: [
      atMost('GET by id in the large table: calls', storeCallsOf(usage), 1),
      atMost('GET by id in the large table: read units', usage.readUnits, 2),
      hope(atMost('GET by id: time in the large table, × the small one', ratio.median, 1.2)),
    ],
  }
}

async function targetsOf({ organisationId, clusterIds }: Fleet) {
  const accessToken = await newToken(organisationId)
  const next = () => {
    const id = clusterIds[Math.floor(Math.random() * clusterIds.length)]
    return getting(`/api/v1/clusters/${id}`, accessToken)
  }
  return { next }
}

/** Lets another world believe the tokens that this process signs. */
async function copyKeys({ environment }: World): Promise<void> {
  const Item = { ...keys.accessKeys(), ...(await get(keys.accessKeys())) }
  const store = DynamoDBDocumentClient.from(new DynamoDBClient(clientSettings(environment, 'DYNAMODB')))
  await store.send(new PutCommand({ TableName: tableName, Item }))
  store.destroy()
}
