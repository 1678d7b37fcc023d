import { type AttributeValue, DynamoDBClient, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { range } from '../support/statistics.ts'
import { clientSettings, tableName } from '../support/world.ts'

/**
 * The floor of a drain: the transactions of a claim and of a completion for each job, as large as the platform's. Answers
 * how many milliseconds they took.
 */
export async function writeBare(environment: Record<string, string>, jobs: number, atOnce: number): Promise<number> {
  const store = new DynamoDBClient(clientSettings(environment, 'DYNAMODB'))
  const run = crypto.randomUUID()
  const left = range(jobs)
  const writeSome = async () => {
    for (let job = left.shift(); job !== undefined; job = left.shift()) {
      for (const verb of ['CLAIM', 'COMPLETE']) {
        await store.send(new TransactWriteItemsCommand({ TransactItems: steps(`${run}#${job}`, verb) }))
      }
    }
  }
  const startedAtMs = performance.now()
  await Promise.all(range(atOnce).map(writeSome))
  store.destroy()
  return performance.now() - startedAtMs
}

const keyOf = (name: string) => ({ pk: { S: `BENCH#${name}` }, sk: { S: 'BARE' } })

/** Changes of a job and a counter, a spent request token, a removed or added item, and the record. */
function steps(job: string, verb: string) {
  const row = (name: string, bytes: number): Record<string, AttributeValue> => ({
    ...keyOf(`${job}#${name}`),
    content: { S: 'x'.repeat(bytes) },
  })
  const put = (Item: Record<string, AttributeValue>) => ({ Put: { TableName: tableName, Item } })
  return [
    put(row('JOB', 500)),
    put(row('CLUSTER', 60)),
    put(row(verb, 60)),
    put(row(`TOKEN-${verb}`, 60)),
    put(row(`RECORD-${verb}`, 800)),
  ]
}
