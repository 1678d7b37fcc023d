import type { Capability } from '../packages/contract/src/endpoint.ts'
import { moduleRepository, modulePrefix, moduleRole } from './modules.ts'
import { grantsOf } from './grants.ts'
import { api } from './gateway.ts'
import { queues } from './queues.ts'
import { identityPrefix, initialAdminToken, registries, signingKeys } from './secrets.ts'
import { settings } from './settings.ts'
import { logRetention, prefix } from './stage.ts'
import { table } from './storage.ts'

/** The alias that everybody calls: an update moves it, a deployment does, too. */
const liveAlias = 'live'

const howToRetrieve = $interpolate`aws secretsmanager get-secret-value --secret-id ${initialAdminToken.name} --query SecretString --output text`

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
  PLAT_MODULE_REPOSITORY: moduleRepository,
  PLAT_MODULE_ROLE: moduleRole.arn,
  PLAT_UPDATE_TARGET: 'lambda-alias',
  PLAT_FUNCTION_PREFIX: `${prefix}-fn`,
  PLAT_FUNCTION_ALIAS: liveAlias,
  PLAT_METRICS: 'emf',
  ...settings,
}

/** Every function of the platform that has been made so far. */
export const platformFunctions: { name: string; functionName: $util.Output<string> }[] = []

/** A function of the platform with the alias that leads to the version of it that serves. */
export function platformFunction(
  name: string,
  { uses, timeoutSeconds, consumes }: { uses: readonly Capability[]; timeoutSeconds: number; consumes?: string },
) {
  const id = name.replace(/(?:^|[/-])([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const dashed = name.replaceAll('/', '-')
  const made = new sst.aws.Function(`${id}Function`, {
    name: `${prefix}-fn-${dashed}`,
    bundle: `dist/functions/${name}`,
    handler: 'index.handler',
    runtime: 'nodejs24.x',
    architecture: 'arm64',
    memory: '512 MB',
    timeout: `${timeoutSeconds} seconds`,
    environment,
    permissions: [...grantsOf(uses), ...(consumes === undefined ? [] : [consumption(consumes)])],
    logging: { format: 'json', retention: logRetention },
    versioning: true,
    transform: {
      // The component would let the whole account take the role, which live development needs and nothing else.
      role: (role) => {
        role.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: 'lambda.amazonaws.com' })
      },
    },
  })
  const alias = new aws.lambda.Alias(`${id}Live`, {
    name: liveAlias,
    functionName: made.name,
    functionVersion: made.nodes.function.version,
  })
  platformFunctions.push({ name: dashed, functionName: made.name })
  return { id, function: made, alias }
}

/** What an event source takes messages with. */
const consumption = (queue: string) => {
  const isDeadLetter = queue.endsWith('-dead-letter')
  const { queue: work, deadLetter } = queues[queue.replace(/-dead-letter$/, '')]
  return {
    actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ChangeMessageVisibility'],
    resources: [(isDeadLetter ? deadLetter : work).arn],
  }
}
