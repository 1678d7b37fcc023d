import {
  CreateAliasCommand,
  CreateFunctionCommand,
  type LambdaClient,
  PublishVersionCommand,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda'
import { folderBucket } from '../lambda/folder-code.ts'
import { type DeployedFunction } from '../graph/functions.ts'

/** Creates every function from its built folder, with a first version and the alias. */
export const deployFunctions = async (client: LambdaClient, functions: readonly DeployedFunction[]): Promise<void> =>
  void (await Promise.all(functions.map((each) => deploy(client, each))))

async function deploy(
  client: LambdaClient,
  { name, functionName, role, ...settings }: DeployedFunction,
): Promise<void> {
  const { timeoutSeconds: Timeout, memoryMb: MemorySize, environment, alias } = settings
  const FunctionName = functionName
  await client.send(
    new CreateFunctionCommand({
      FunctionName,
      Role: role,
      Timeout,
      MemorySize,
      Environment: { Variables: environment },
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      Code: { S3Bucket: folderBucket, S3Key: name },
    }),
  )
  const patience = { client, minDelay: 0.05, maxDelay: 1, maxWaitTime: 60 }
  await waitUntilFunctionActiveV2(patience, { FunctionName })
  const { Version: FunctionVersion } = await client.send(new PublishVersionCommand({ FunctionName }))
  await waitUntilFunctionActiveV2(patience, { FunctionName, Qualifier: FunctionVersion })
  await client.send(new CreateAliasCommand({ FunctionName, Name: alias, FunctionVersion }))
}
