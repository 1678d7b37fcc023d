import type { ECRClientConfig } from '@aws-sdk/client-ecr'
import { isAhead, now } from '@platform/core/clock'
import type { Credentials, RegistryClient } from '@platform/oci/client'
import type { EcrCalls } from './ecr-calls.ts'
import type { TargetRegistry } from './image.ts'

/** One hour less than the lifetime of ECR's tokens. */
const tokenMs = 11 * 3_600_000

/** This policy is for functions of the same account. Another account would need its own permission. */
const lambdaReadPolicy = JSON.stringify({
  Version: '2012-10-17',
  Statement: [
    {
      Sid: 'LambdaReadsImages',
      Effect: 'Allow',
      Principal: { Service: 'lambda.amazonaws.com' },
      Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
    },
  ],
})

/**
 * Creates the target for Amazon ECR. ECR does not create repositories on demand, authenticates callers by tokens that
 * are valid for twelve hours, and lets Lambda read images if the repository's policy allows it. The code is tested only
 * against the documented API, not against ECR itself. The first call loads the SDK.
 */
export function ecrTarget(
  aws: ECRClientConfig,
  path: string,
  clientOf: (credentials: () => Promise<Credentials>) => RegistryClient,
): TargetRegistry {
  let callsPromise: Promise<EcrCalls> | undefined
  const calls = () => (callsPromise ??= import('./ecr-calls.ts').then(({ ecrCalls }) => ecrCalls(aws)))
  let heldCredentials: { credentials: Credentials; untilMs: number } | undefined
  const credentials = async (): Promise<Credentials> => {
    if (heldCredentials !== undefined && isAhead(heldCredentials.untilMs, tokenMs)) return heldCredentials.credentials
    const ecr = await calls()
    const [username = '', ...password] = (await ecr.token()).split(':')
    heldCredentials = { credentials: { username, password: password.join(':') }, untilMs: now() + tokenMs }
    return heldCredentials.credentials
  }
  return {
    client: clientOf(credentials),
    path,
    ensureRepository: async (repository) => {
      const ecr = await calls()
      await ecr.create(repository)
      // Lambda would set the policy itself with the first image, but possibly too late for that image.
      await ecr.setPolicy(repository, lambdaReadPolicy)
    },
    removeRepository: async (repository) => {
      const ecr = await calls()
      await ecr.remove(repository)
    },
  }
}
