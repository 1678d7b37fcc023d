import type { Capability } from '../packages/contract/src/endpoint.ts'
import { moduleImages, moduleLogGroup, modulePrefix, moduleRole } from './modules.ts'
import { grantsOf } from './grants.ts'
import { api } from './gateway.ts'
import { queues } from './queues.ts'
import { identityPrefix, initialAdminToken, registries, signingKeys } from './secrets.ts'
import { settingsOf } from './settings.ts'
import { logRetention, prefix } from './stage.ts'
import { table } from './storage.ts'

const functionPrefix = `${prefix}-fn`

/** What Lambda calls a function of the platform. */
export const functionNameOf = (name: string): string => `${functionPrefix}-${name.replaceAll('/', '-')}`

/** The alias that everybody calls: an update moves it, a deployment does, too. */
const liveAlias = 'live'

/** Prints the initial admin token, and nothing else (D54). */
export const howToRetrieve = $interpolate`aws secretsmanager get-secret-value --secret-id ${initialAdminToken.name} --query SecretString --output text`

/** What all functions are told. Names and addresses only: a secret is fetched where it is needed. */
const environment = {
  PLAT_TABLE: table.name,
  PLAT_API_URL: api.url,
  PLAT_HOW_TO_RETRIEVE: howToRetrieve,
  ...Object.fromEntries(
    Object.entries(queues).map(([name, { queue }]) => [`PLAT_QUEUE_${name.toUpperCase()}`, queue.url]),
  ),
  PLAT_SECRET_SIGNING_KEYS: signingKeys.name,
  PLAT_SECRET_ADMIN_TOKEN: initialAdminToken.name,
  PLAT_SECRET_REGISTRIES: registries.name,
  PLAT_SECRET_IDENTITY_PREFIX: identityPrefix,
  PLAT_MODULE_RUNTIME: 'lambda',
  PLAT_MODULE_PREFIX: modulePrefix,
  PLAT_MODULE_REPOSITORY: moduleImages,
  PLAT_MODULE_REGISTRY: 'ecr',
  PLAT_MODULE_ROLE: moduleRole.arn,
  PLAT_MODULE_LOG_GROUP: moduleLogGroup.name,
  PLAT_UPDATE_TARGET: 'lambda-alias',
  PLAT_FUNCTION_PREFIX: functionPrefix,
  PLAT_FUNCTION_ALIAS: liveAlias,
  PLAT_METRICS: 'emf',
  ...settingsOf(process.env),
}

/** Where 512 MB are not enough: who computes passwords wants a whole processor, which begins here, and who moves images a broad way out. */
const memory: Record<string, `${number} MB`> = {
  auth: '1769 MB',
  setup: '1769 MB',
  users: '1769 MB',
  'queue/updates': '1024 MB',
}

/** Every function that has been made so far → what its alias leads to: another version with each change of it. */
export const versions: Record<string, $util.Output<string>> = {}

/** A function of the platform with the alias that leads to the version of it that serves. */
export function platformFunction(
  name: string,
  { uses, timeoutSeconds, consumes }: { uses: readonly Capability[]; timeoutSeconds: number; consumes?: string },
) {
  const id = name.replace(/(?:^|[/-])([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const made = new sst.aws.Function(`${id}Function`, {
    name: functionNameOf(name),
    bundle: `dist/functions/${name}`,
    handler: 'index.handler',
    runtime: 'nodejs24.x',
    architecture: 'arm64',
    memory: memory[name] ?? '512 MB',
    timeout: `${timeoutSeconds} seconds`,
    environment,
    permissions: [...grantsOf(uses), ...(consumes === undefined ? [] : [consumption(consumes)])],
    logging: { format: 'json', retention: logRetention },
    versioning: true,
    transform: {
      // The component would let the whole account take the role, which live development needs and nothing else.
      role: (role) => {
        // One that the component makes up may lose the stage, if that is long.
        role.name = functionNameOf(name)
        role.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' })
      },
      // Two lines of Lambda's own for each invocation would cost more than it: what ends badly is still written.
      function: (args) => {
        args.loggingConfig = $util
          .output(args.loggingConfig)
          .apply((logging) => ({ logFormat: 'JSON', ...logging, systemLogLevel: 'WARN' }))
      },
    },
  })
  const alias = new aws.lambda.Alias(`${id}Live`, {
    name: liveAlias,
    functionName: made.name,
    functionVersion: made.nodes.function.version,
  })
  versions[name] = alias.functionVersion
  return { id, function: made, alias }
}

/** What an event source takes messages with. */
const consumption = (queue: string) => {
  const isDeadLetter = queue.endsWith('-dead-letter')
  const { queue: work, deadLetter } = queues[queue.replace(/-dead-letter$/, '')]
  return {
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'],
    resources: [(isDeadLetter ? deadLetter : work).arn],
  }
}
