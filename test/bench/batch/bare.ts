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

/** As large as a job, a counter, an item of the inbox or a result, a spent request token and the record. */
const sizes = { JOB: 500, CLUSTER: 60, ITEM: 60, TOKEN: 60, RECORD: 800 }

const steps = (job: string, verb: string) =>
  Object.entries(sizes).map(([name, bytes]) => put(keyOf(`${job}#${verb}#${name}`), 'x'.repeat(bytes)))

const put = (key: Record<string, AttributeValue>, content: string) => ({
  Put: { TableName: tableName, Item: { ...key, content: { S: content } } },
})
