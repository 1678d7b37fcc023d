import {
  CreateRepositoryCommand,
  DeleteRepositoryCommand,
  ECRClient,
  type ECRClientConfig,
  GetAuthorizationTokenCommand,
  SetRepositoryPolicyCommand,
} from '@aws-sdk/client-ecr'
import { isAws } from '@platform/core/aws/error-name'

/** The calls of ECR that modules need. They are named one by one, so that a bundle has no others. */
export interface EcrCalls {
  /** Who shows it, as user and password of Basic, is who has asked for it. */
  token: () => Promise<string>
  /** One that exists is fine. */
  create: (repository: string) => Promise<void>
  /** In place of whatever it had. */
  setPolicy: (repository: string, policy: string) => Promise<void>
  /** With all that is in it; one that has gone is fine. */
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
      ignoring('RepositoryAlreadyExistsException', client.send(new CreateRepositoryCommand({ repositoryName }))),
    setPolicy: async (repositoryName, policyText) =>
      void (await client.send(new SetRepositoryPolicyCommand({ repositoryName, policyText }))),
    remove: (repositoryName) =>
      ignoring(
        'RepositoryNotFoundException',
        client.send(new DeleteRepositoryCommand({ repositoryName, force: true })),
      ),
  }
}

async function ignoring(name: string, call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    if (!isAws(error, name)) throw error
  })
}
