import type { Capability } from '../packages/contract/src/endpoint.ts'
import { moduleImagePrefix, moduleLogGroup, modulePrefix, moduleRole } from './modules.ts'
import { channelSettings } from './channel.ts'
import { grantsOf, logGrant } from './grants.ts'
import { reservedConcurrencyOf } from './concurrency.ts'
import { frontSettings, publicUrl } from './front.ts'
import { options } from './options.ts'
import { queues } from './queues.ts'
import { identityPrefix, initialAdminToken, registriesName } from './secrets.ts'
import { settingsOf } from './settings.ts'
import { globalPrefix, logRetention, monitoring, prefix } from './stage.ts'
import { table } from './storage.ts'

const functionPrefix = `${prefix}-fn`

export const functionNameOf = (name: string): string => `${functionPrefix}-${name.replaceAll('/', '-')}`

/** The alias that every caller invokes; deployments and updates move it. */
const liveAlias = 'live'

export const adminTokenCommand = $interpolate`aws secretsmanager get-secret-value --secret-id ${initialAdminToken.name} --query SecretString --output text`

/** Contains no secrets: functions fetch each secret when they need it. */
const environment = {
  PLAT_TABLE: table.name,
  PLAT_API_URL: publicUrl,
  PLAT_ADMIN_TOKEN_COMMAND: adminTokenCommand,
  ...Object.fromEntries(
    Object.entries(queues).map(([name, { queue }]) => [`PLAT_QUEUE_${name.toUpperCase()}`, queue.url]),
  ),
  PLAT_SECRET_KEYS_PREFIX: prefix,
  PLAT_SECRET_ADMIN_TOKEN: initialAdminToken.name,
  PLAT_SECRET_REGISTRIES: registriesName,
  PLAT_SECRET_IDENTITY_PREFIX: identityPrefix,
  PLAT_MODULE_RUNTIME: 'lambda',
  PLAT_MODULE_PREFIX: modulePrefix,
  PLAT_MODULE_REPOSITORY: moduleImagePrefix,
  PLAT_MODULE_REGISTRY: 'ecr',
  PLAT_MODULE_ROLE: moduleRole.arn,
  PLAT_MODULE_LOG_GROUP: moduleLogGroup.name,
  PLAT_UPDATE_TARGET: 'lambda-alias',
  PLAT_FUNCTION_PREFIX: functionPrefix,
  PLAT_FUNCTION_ALIAS: liveAlias,
  ...channelSettings,
  PLAT_METRICS: monitoring === 'full' ? 'emf' : 'off',
  ...settingsOf(process.env),
  ...frontSettings,
}

/**
 * Functions that need more than 512 MB: Lambda allots a full processor from 1,769 MB (password hashing), and network
 * bandwidth with memory (images).
 */
const memoryByFunction: Record<string, `${number} MB`> = {
  auth: '1769 MB',
  setup: '1769 MB',
  users: '1769 MB',
  'queue/installs': '1024 MB',
  'queue/updates': '1024 MB',
}

/** Function → the version to which the deployment sets its alias. */
export const versions: Record<string, $util.Output<string>> = {}

export function createPlatformFunction(
  name: string,
  {
    capabilities,
    timeoutSeconds,
    consumedQueue,
  }: { capabilities: readonly Capability[]; timeoutSeconds: number; consumedQueue?: string },
) {
  const id = name.replace(/(?:^|[/-])([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const lambda = new sst.aws.Function(`${id}Function`, {
    name: functionNameOf(name),
    bundle: `dist/functions/${name}`,
    handler: 'index.handler',
    runtime: 'nodejs24.x',
    architecture: 'arm64',
    memory: memoryByFunction[name] ?? '512 MB',
    timeout: `${timeoutSeconds} seconds`,
    environment,
    permissions: [
      ...grantsOf(capabilities),
      logGrant(functionNameOf(name)),
      ...(consumedQueue === undefined ? [] : [consumerGrant(consumedQueue)]),
    ],
    ...reservation(name),
    logging: { format: 'json', retention: logRetention },
    versioning: true,
    transform: {
      // SST would let the whole account assume the role, which only live development needs.
      role: (role) => {
        // A generated name could be truncated and lose the stage if the stage name is long.
        role.name = $interpolate`${globalPrefix}-${name.replaceAll('/', '-')}`
        // SST would attach a policy that allows writing every log group of the account.
        role.managedPolicyArns = []
        role.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' })
      },
      // Lambda's two log lines for each invocation would cost more than the invocation; errors are still logged. The
      // platform applies PLAT_LOG_LEVEL itself, so Lambda must not drop its debug lines.
      function: (args) => {
        args.loggingConfig = $util
          .output(args.loggingConfig)
          .apply((logging) => ({ logFormat: 'JSON', ...logging, systemLogLevel: 'WARN', applicationLogLevel: 'TRACE' }))
      },
    },
  })
  const alias = new aws.lambda.Alias(`${id}Live`, {
    name: liveAlias,
    functionName: lambda.name,
    functionVersion: lambda.nodes.function.version,
  })
  versions[name] = alias.functionVersion
  return { id, function: lambda, alias }
}

function reservation(name: string) {
  const reservedConcurrency = reservedConcurrencyOf(name, Number(options.concurrency ?? 0))
  return reservedConcurrency === undefined ? {} : { concurrency: { reserved: reservedConcurrency } }
}

const consumerGrant = (queue: string) => {
  const isDeadLetter = queue.endsWith('-dead-letter')
  const { queue: workQueue, deadLetter } = queues[queue.replace(/-dead-letter$/, '')]
  return {
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'],
    resources: [(isDeadLetter ? deadLetter : workQueue).arn],
  }
}
