import assert from 'node:assert/strict'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateSecretCommand, ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { waitForBatch, jobFor, submitBatch } from '../../../conformance/support/batch.ts'
import { Platform } from '../../../conformance/support/platform.ts'
import { startWebhookTenant, webhooksPath } from '../../../conformance/support/webhooks.ts'
import type { Simulator } from '../../../simulator/simulator.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { statementOf, usedActions } from '../../grant.ts'
import type { Environment } from './environment.ts'

type Deployment = Pick<Environment, 'simulator' | 'tick'>

/** Withholds a grant while `work` runs, so that the messages that need the grant are lost. */
export async function withoutGrant<Result>(
  simulator: Simulator,
  [name, grant]: readonly [name: string, grant: string],
  work: () => Promise<Result>,
): Promise<Result> {
  using _ = simulator.cloud.iamProxy.withhold(statementOf(simulator, name, grant))
  return await work()
}

export async function sendTo({ cloud }: Simulator, queue: string, message: object): Promise<void> {
  const client = new SQSClient(clientSettings(cloud.sqsUrl, cloud.accessKeyId))
  const QueueUrl = `${cloud.sqsUrl}/000000000000/platform-dev-${queue}`
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(message) }))
  client.destroy()
}

export const sweepUntil = (
  { tick }: Pick<Deployment, 'tick'>,
  condition: string,
  check: () => Promise<boolean>,
): Promise<boolean> =>
  waitFor(condition, async () => {
    await tick('schedule/sweep')
    return check()
  })

const submitBatchUnannounced = async ({ simulator, platform }: Environment, clusterId: string): Promise<any> =>
  withoutGrant(simulator, ['jobs', 'queue:batches'], async () =>
    submitBatch(platform.as(await platform.tenant), { jobs: [jobFor(clusterId)] }),
  )

export async function deadLetterBatch(environment: Environment): Promise<void> {
  const { platform, simulator } = environment
  const tenant = await platform.tenant
  const otherTenant = platform.as(tenant)
  const { id: clusterId } = await otherTenant.newCluster()
  const { batchId } = await submitBatchUnannounced(environment, clusterId)
  await sendTo(simulator, 'batches-dead-letter', { organisationId: tenant.organisationId, batchId })
  const { counts } = await waitForBatch(otherTenant, batchId)
  assert.equal(counts.failed, 1)
}

export async function sweepBatches(environment: Environment): Promise<void> {
  const { platform } = environment
  const relay = await platform.as(await platform.tenant).newRelay()
  await submitBatchUnannounced(environment, relay.clusterId)
  await sweepUntil(
    environment,
    'the relay to receive a job',
    async () => expectStatus(await relay.heartbeat(), 200).jobs.length > 0,
  )
}

/** Uses a new organisation, because another change of the same organisation would also project the lost changes. */
export async function sweepEvents({ simulator, platform, tick }: Environment): Promise<void> {
  const { options, contract, cleanUp } = platform
  const otherPlatform = new Platform(options, contract, cleanUp)
  const otherTenant = otherPlatform.as(await otherPlatform.tenant)
  await sweepUntil({ tick }, 'the sweep to enqueue projections', async () => {
    await withoutGrant(simulator, ['sites', 'queue:events'], () => otherTenant.newSite())
    return usedActions(simulator, 'schedule/sweep', 'queue:events').size > 0
  })
}

export async function sweepDeliveries(environment: Environment): Promise<void> {
  const { simulator, platform } = environment
  await using deliveries = await startWebhookTenant(platform)
  assert.ok(deliveries)
  const { admin, receiver, newWebhook } = deliveries
  const { id } = await newWebhook('/swept', ['platform.setup.*'])
  await withoutGrant(simulator, ['webhooks', 'queue:webhooks'], async () =>
    expectStatus(await admin.post(`${webhooksPath}/${id}/test`), 202),
  )
  await sweepUntil(environment, 'the delivery', async () => receiver.requests.length > 0)
}

export async function sweepOrphanedSecrets({ simulator, tick }: Environment): Promise<void> {
  const { secretsUrl, dynamoDbUrl, accessKeyId } = simulator.cloud
  const { environment } = simulator.functions[0] ?? {}
  const Name = `${environment?.['PLAT_SECRET_IDENTITY_PREFIX']}/${crypto.randomUUID()}`
  using clients = new DisposableStack()
  const destroy = (client: { destroy: () => void }) => client.destroy()
  const secretsClient = clients.adopt(new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId)), destroy)
  const tableClient = clients.adopt(new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId)), destroy)
  await secretsClient.send(new CreateSecretCommand({ Name, SecretString: '{}' }))
  const Item = { ...keys.orphanedSecret(Name), name: Name, ...keys.dueIndexKeys(Name, Date.now()) }
  await tableClient.send(new PutCommand({ TableName: environment?.['PLAT_TABLE'], Item }))
  await sweepUntil({ tick }, 'the secret to be deleted', async () => {
    const { SecretList = [] } = await secretsClient.send(new ListSecretsCommand({ MaxResults: 100 }))
    return SecretList.every((secret) => secret.Name !== Name)
  })
}
