import { AwsServiceError } from '../http/error.ts'
import { type AwsServer, serveAws } from '../http/server.ts'
import type { AwsCall } from '../http/service.ts'
import { listSecrets } from './catalog.ts'
import { createSecret, deleteSecret } from './lifecycle.ts'
import type { Operation } from './operation.ts'
import { SecretStore } from './store.ts'
import { getSecretValue, putSecretValue } from './values.ts'

export interface SecretsManagerOptions {
  /** Folder of the secrets. Without it, they are in memory only. */
  dataDir?: string
  /** 0, the default, selects a free port. */
  port?: number
  region?: string
  /** If given, HTTP requests must name this access key in their signature, which is not verified. */
  accessKeyId?: string
  nowMs?: () => number
}

/** Listens on loopback. Supports only the actions that the platform calls. */
export async function startSecretsManager(options: SecretsManagerOptions = {}): Promise<AwsServer> {
  const secrets = new SecretStore(options.dataDir, options.nowMs ?? Date.now)
  const operations = new Map(Object.entries(operationsOf(options.region ?? 'us-east-1')))
  const respond = ({ action, input }: AwsCall) => {
    const operation = operations.get(action)
    if (operation === undefined)
      throw new AwsServiceError('UnknownOperationException', `${action} is not supported here.`)
    return operation(secrets, input)
  }
  const { accessKeyId, port } = options
  const contentType = 'application/x-amz-json-1.1'
  return serveAws({ target: 'secretsmanager', contentType, errorNamespace: '', accessKeyId, respond }, port)
}

const operationsOf = (region: string): Record<string, Operation> => ({
  CreateSecret: createSecret(region),
  DeleteSecret: deleteSecret,
  GetSecretValue: getSecretValue,
  ListSecrets: listSecrets,
  PutSecretValue: putSecretValue,
})
