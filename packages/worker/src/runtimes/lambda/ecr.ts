import { type ECRClientConfig } from '@aws-sdk/client-ecr'
import { isAhead, now } from '@platform/core/clock'
import { type Credentials, type RegistryClient } from '@platform/oci/client'
import { type EcrCalls } from './ecr-calls.ts'
import { type TargetRegistry } from './image.ts'

/** One hour less than the lifetime of ECR's tokens. */
const tokenMs = 11 * 3_600_000

/** Only for functions of the same account; another account would need its own permission. */
const readableByLambda = JSON.stringify({
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
 * Amazon ECR. It does not create repositories on demand, authenticates callers by tokens that are valid for twelve
 * hours, and lets Lambda read images if the repository's policy allows it. Tested against the documented API only, not
 * against ECR itself. The first call loads the SDK.
 */
export function ecrTarget(
  aws: ECRClientConfig,
  path: string,
  clientOf: (credentials: () => Promise<Credentials>) => RegistryClient,
): TargetRegistry {
  let loading: Promise<EcrCalls> | undefined
  const calls = () => (loading ??= import('./ecr-calls.ts').then(({ ecrCalls }) => ecrCalls(aws)))
  let held: { credentials: Credentials; untilMs: number } | undefined
  const credentials = async (): Promise<Credentials> => {
    if (held !== undefined && isAhead(held.untilMs, tokenMs)) return held.credentials
    const ecr = await calls()
    const [username = '', ...password] = (await ecr.token()).split(':')
    held = { credentials: { username, password: password.join(':') }, untilMs: now() + tokenMs }
    return held.credentials
  }
  return {
    client: clientOf(credentials),
    path,
    ensureRepository: async (repository) => {
      const ecr = await calls()
      await ecr.create(repository)
      // Lambda would set the policy itself with the first image, but possibly too late for that image.
      await ecr.setPolicy(repository, readableByLambda)
    },
    removeRepository: async (repository) => {
      const ecr = await calls()
      await ecr.remove(repository)
    },
  }
}
