import {
  CreateRepositoryCommand,
  DeleteRepositoryCommand,
  ECRClient,
  type ECRClientConfig,
  GetAuthorizationTokenCommand,
  SetRepositoryPolicyCommand,
} from '@aws-sdk/client-ecr'
import { isAws } from '@platform/core/aws/sdk'

/** The ECR calls that modules need. Named imports keep all others out of the bundle. */
export interface EcrCalls {
  /** Returns `user:password` for Basic authentication. The token grants the permissions of its requester. */
  token: () => Promise<string>
  create: (repository: string) => Promise<void>
  setPolicy: (repository: string, policy: string) => Promise<void>
  /** Removes a repository with its contents; a missing one is not an error. */
  remove: (repository: string) => Promise<void>
}

export function ecrCalls(aws: ECRClientConfig): EcrCalls {
  const client = new ECRClient(aws)
  return {
    token: async () => {
      const { authorizationData = [] } = await client.send(new GetAuthorizationTokenCommand({}))
      return Buffer.from(authorizationData[0]?.authorizationToken ?? '', 'base64').toString()
    },
    create: (repositoryName) =>
      ignoreError('RepositoryAlreadyExistsException', client.send(new CreateRepositoryCommand({ repositoryName }))),
    setPolicy: async (repositoryName, policyText) =>
      void (await client.send(new SetRepositoryPolicyCommand({ repositoryName, policyText }))),
    remove: (repositoryName) =>
      ignoreError(
        'RepositoryNotFoundException',
        client.send(new DeleteRepositoryCommand({ repositoryName, force: true })),
      ),
  }
}

async function ignoreError(name: string, call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!isAws(error, name)) throw error
  })
}
