/**
 * `npm run restore:drill`: removes a simulated deployment, restores it as docs/operations.md describes, and compares
 * the data.
 */
import { isDeepStrictEqual } from 'node:util'
import { BatchWriteItemCommand, DynamoDBClient, paginateScan, type AttributeValue } from '@aws-sdk/client-dynamodb'
import { PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { parseCommandLine } from '@platform/local/command-line'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { buildFunctions } from '../../scripts/deploy/build.ts'
import { setupRequest } from '../support/platform.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { Cloud } from './aws/cloud.ts'
import { operatorSettings } from './settings.ts'
import { readSecret } from './secret.ts'
import { type Simulator, startSimulator } from './simulator.ts'

const stage = 'production'
const restoredTable = `platform-${stage}-restored`
const secretNames = ['access-keys', 'statement-keys', 'webhook-key', 'module-key', 'audit-key', 'module-token-keys']

interface Backup {
  items: Record<string, AttributeValue>[]
  secrets: Map<string, string>
}

type Call = (method: string, path: string, body?: object) => Promise<any>

const callerOf =
  (url: string, token?: string): Call =>
  async (method, path, body) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const response = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${text}`)
    return JSON.parse(text)
  }

/** Sets up the platform with a site, a cluster and a job. Returns an access token. */
async function fill({ url, initialAdminToken }: Simulator): Promise<string> {
  const setup = setupRequest(await initialAdminToken())
  const { accessToken } = await callerOf(url)('POST', '/api/v1/setup/complete', setup)
  const call = callerOf(url, accessToken)
  await call('POST', '/api/v1/sites', { name: 'berlin' })
  const { id: clusterId } = await call('POST', '/api/v1/clusters', { name: 'berlin-1', type: 'Hypervisor' })
  await call('POST', '/api/v1/jobs', { clusterId, type: 'InvokeScript', payload: { script: 'true' } })
  return accessToken
}

/**
 * Reads resources through the API. A `token` from before the loss is accepted only if the signing keys were restored.
 */
async function read(url: string, token: string): Promise<Map<string, unknown>> {
  const call = callerOf(url, token)
  const paths = ['sites', 'clusters', 'users', 'jobs', 'platform/audit/verify']
  return new Map(await Promise.all(paths.map(async (path) => [path, await call('GET', `/api/v1/${path}`)] as const)))
}

/** An open connection would keep the emulators from stopping. */
const disposable = <Client extends { destroy: () => void }>(client: Client) =>
  Object.assign(client, { [Symbol.dispose]: () => client.destroy() })

const storeOf = ({ dynamoDbUrl, accessKeyId }: Cloud) =>
  disposable(new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId)))

async function backUp(cloud: Cloud, TableName: string): Promise<Backup> {
  using client = storeOf(cloud)
  const items: Backup['items'] = []
  for await (const { Items = [] } of paginateScan({ client }, { TableName })) items.push(...Items)
  const secrets = new Map<string, string>()
  for (const name of secretNames) secrets.set(name, (await readSecret(cloud, `platform-${stage}/${name}`)) ?? '')
  return { items, secrets }
}

async function restore(cloud: Cloud, { items, secrets }: Backup): Promise<void> {
  using store = storeOf(cloud)
  for (let start = 0; start < items.length; start += 25) {
    const writes = items.slice(start, start + 25).map((Item) => ({ PutRequest: { Item } }))
    await store.send(new BatchWriteItemCommand({ RequestItems: { [restoredTable]: writes } }))
  }
  using client = disposable(new SecretsManagerClient(clientSettings(cloud.secretsUrl, cloud.accessKeyId)))
  for (const [name, SecretString] of secrets) {
    await client.send(new PutSecretValueCommand({ SecretId: `platform-${stage}/${name}`, SecretString }))
  }
}

await using folder = await temporaryFolder()
await buildFunctions(folder.path)
const environment = await operatorSettings(process.env)
const start = (settings: Record<string, string>, beforeBootstrap?: (cloud: Cloud) => Promise<void>) =>
  startSimulator({
    stage,
    port: 0,
    environment: { ...environment, ...settings },
    functionsDir: folder.path,
    hasClocks: false,
    onOutput: () => {},
    log: (message, details) => console.error(message, details),
    ...(beforeBootstrap && { beforeBootstrap }),
  })

async function lose(): Promise<{ token: string; dataBefore: Map<string, unknown>; backup: Backup }> {
  await using deployment = await start({})
  const token = await fill(deployment)
  const dataBefore = await read(deployment.url, token)
  const table = deployment.functions[0]?.environment['PLAT_TABLE'] ?? ''
  return { token, dataBefore, backup: await backUp(deployment.cloud, table) }
}

parseCommandLine(
  `npm run restore:drill

Removes a simulated deployment, restores it as docs/operations.md describes, and compares the data.`,
  {},
)
const { token, dataBefore, backup } = await lose()
console.log(`Saved ${backup.items.length} items and ${backup.secrets.size} secrets, and removed the deployment.`)
await using restored = await start({ PLAT_RESTORED_TABLE: restoredTable }, (cloud) => restore(cloud, backup))
const dataAfter = await read(restored.url, token)
const differences = [...dataBefore].filter(([path, value]) => !isDeepStrictEqual(value, dataAfter.get(path)))
for (const [path, value] of differences) console.error(`${path} differs:`, value, dataAfter.get(path))
console.log(differences.length === 0 ? 'The restored platform returns the same data.' : 'The restore lost data.')
process.exitCode = differences.length === 0 ? 0 : 1
