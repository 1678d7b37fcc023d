import { type ECRClientConfig } from '@aws-sdk/client-ecr'
import { now } from '@platform/core/clock'
import { type Credentials, type RegistryClient } from '@platform/oci/client'
import { type EcrCalls } from './ecr-calls.ts'
import { type TargetRegistry } from './registry-target.ts'

/** An hour less than ECR's tokens live. */
const tokenMs = 11 * 3_600_000

/** Functions of the same account alone: for those of another one that would have to be let in, too. */
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
 * Amazon's registry. It makes no repository by itself, knows callers by tokens of twelve hours, and lets Lambda read what a
 * repository's policy says. Nothing here has run against ECR, but against what its reference says. Its SDK is loaded with the
 * first call.
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
    if (held !== undefined && held.untilMs > now()) return held.credentials
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
      // Lambda would do so by itself when it meets the first image, and perhaps too late for it.
      await ecr.setPolicy(repository, readableByLambda)
    },
    removeRepository: async (repository) => {
      const ecr = await calls()
      await ecr.remove(repository)
    },
  }
}
