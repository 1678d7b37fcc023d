import { BatchGetItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { verifyToken } from './access-token.ts'
import {
  attributesOf,
  type BaselineEvent,
  type BaselineResponse,
  keyOf,
  reject,
  respond,
  store,
  TableName,
} from './store.ts'
import { rightsKeys, submissionOf } from './wire.ts'

const queue = new SQSClient()

export async function handler(event: BaselineEvent): Promise<BaselineResponse> {
  const claims = await verifyToken(event.headers['authorization'])
  if (claims === undefined) return reject(401)
  const { clusterId, type, payload } = JSON.parse(event.body ?? '')
  if (typeof clusterId !== 'string' || type !== 'InvokeScript' || typeof payload?.script !== 'string')
    return reject(400)

  const { org: organisationId, sub: userId, sid: sessionId } = claims
  const caller = { organisationId, userId, sessionId, address: event.requestContext.http.sourceIp }
  const RequestItems = { [TableName]: { Keys: rightsKeys(caller).map(keyOf), ConsistentRead: true } }
  const { Responses } = await store.send(new BatchGetItemCommand({ RequestItems }))
  const rights = Responses?.[TableName] ?? []
  if (rights.length < 2 || rights.some((item) => item['revokedAtMs'] !== undefined)) return reject(401)
  const { job, outbox, cluster, quota } = submissionOf(caller, { clusterId, payload })
  const TransactItems = [{ Update: conditioned(cluster) }, putNew(job), { Update: conditioned(quota) }, putNew(outbox)]
  await store.send(new TransactWriteItemsCommand({ TransactItems }))
  const MessageBody = JSON.stringify({ organisationId: organisationId })
  const message = { QueueUrl: process.env['PLAT_QUEUE_EVENTS'], MessageBody, MessageGroupId: organisationId }
  await queue.send(new SendMessageCommand(message))
  const createdAt = new Date(job.createdAtMs).toISOString()
  return respond(202, { id: job.id, clusterId, type, status: 'Queued', createdAt })
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const putNew = (item: object) => ({
  Put: { TableName, Item: attributesOf(item), ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

const conditioned = <Request extends { Key: object; values: object }>({ Key, values, ...request }: Request) => ({
  TableName,
  Key: attributesOf(Key),
  ...request,
  ExpressionAttributeValues: attributesOf(values),
  ...returnOld,
})
