import { type ECRClientConfig } from '@aws-sdk/client-ecr'
import { now } from '@platform/core/clock'
import { type Credentials, type RegistryClient } from '@platform/registry/client'
import { isAws } from './lambda-failure.ts'
import { type TargetRegistry } from './lambda-target.ts'

/** An hour less than ECR's tokens live. */
const tokenMs = 11 * 3_600_000

/**
 * Amazon's registry. It makes no repository by itself, and knows callers by tokens of twelve hours; Lambda lets itself read a
 * repository when it is told to use an image of it, if the caller may set that repository's policy. There is no stand-in for
 * ECR: nothing here has run against it. Its SDK is loaded with the first call.
 */
export function ecrTarget(
  aws: ECRClientConfig,
  path: string,
  clientOf: (credentials: () => Promise<Credentials>) => RegistryClient,
): TargetRegistry {
  const loading = once(async () => {
    const sdk = await import('@aws-sdk/client-ecr')
    return { sdk, ecr: new sdk.ECRClient(aws) }
  })
  let held: { credentials: Credentials; untilMs: number } | undefined
  const credentials = async (): Promise<Credentials> => {
    if (held !== undefined && held.untilMs > now()) return held.credentials
    const { sdk, ecr } = await loading()
    const { authorizationData = [] } = await ecr.send(new sdk.GetAuthorizationTokenCommand({}))
    const text = Buffer.from(authorizationData[0]?.authorizationToken ?? '', 'base64').toString()
    const [username = '', ...password] = text.split(':')
    held = { credentials: { username, password: password.join(':') }, untilMs: now() + tokenMs }
    return held.credentials
  }
  return {
    client: clientOf(credentials),
    path,
    ensureRepository: async (repositoryName) => {
      const { sdk, ecr } = await loading()
      await ignoring('RepositoryAlreadyExistsException', ecr.send(new sdk.CreateRepositoryCommand({ repositoryName })))
    },
    removeRepository: async (repositoryName) => {
      const { sdk, ecr } = await loading()
      const removal = new sdk.DeleteRepositoryCommand({ repositoryName, force: true })
      await ignoring('RepositoryNotFoundException', ecr.send(removal))
    },
  }
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => (made ??= make())
}

async function ignoring(name: string, call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!isAws(error, name)) throw error
  })
}
