import {
  CreateAliasCommand,
  DeleteAliasCommand,
  DeleteFunctionCommand,
  GetAliasCommand,
  GetFunctionCommand,
  GetFunctionConfigurationCommand,
  type LambdaClient,
  ListAliasesCommand,
  ListVersionsByFunctionCommand,
  PublishVersionCommand,
  UpdateAliasCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilPublishedVersionActive,
} from '@aws-sdk/client-lambda'
import { expect, test } from 'vitest'
import { invoke, rejectionOf, serveLambda, settled } from './support.ts'

const FunctionName = 'echo'
const often = { minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }

/** Publishes what answers with a colour; answers the number of the version. */
async function publish(client: LambdaClient, colour: string): Promise<string> {
  const Environment = { Variables: { COLOUR: colour } }
  await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment }))
  await settled(client)
  const { Version = '' } = await client.send(new PublishVersionCommand({ FunctionName, Description: colour }))
  await waitUntilPublishedVersionActive({ client, ...often }, { FunctionName, Qualifier: Version })
  return Version
}

const colourOf = async (client: LambdaClient, Qualifier: string) => {
  const { result, version } = await invoke(client, {}, { Qualifier })
  return [result.env.COLOUR, version]
}

test('a version stays as it was published, whatever becomes of the function', async () => {
  const { client, active, push } = await serveLambda()
  await active()
  expect(await publish(client, 'blue')).toBe('1')
  expect(await publish(client, 'green')).toBe('2')
  await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri: await push({ labels: { is: 'new' } }) }))
  await settled(client)
  expect(await colourOf(client, '1')).toEqual(['blue', '1'])
  expect(await colourOf(client, '2')).toEqual(['green', '2'])
  expect(await colourOf(client, '$LATEST')).toEqual(['green', '$LATEST'])
  const { Configuration } = await client.send(new GetFunctionCommand({ FunctionName, Qualifier: '1' }))
  expect(Configuration).toMatchObject({ Version: '1', Description: 'blue' })
  expect(Configuration?.FunctionArn).toMatch(/:function:echo:1$/)
  const { result } = await invoke(client, {}, { Qualifier: '1' })
  expect(result.env).toMatchObject({ AWS_LAMBDA_FUNCTION_VERSION: '1' })
})

test('what is the last version already is not published again, and keeps its description', async () => {
  const { client, active } = await serveLambda()
  await active()
  await publish(client, 'blue')
  const again = await client.send(new PublishVersionCommand({ FunctionName, Description: 'again' }))
  expect(again).toMatchObject({ Version: '1', Description: 'blue' })
})

test('a number is never given twice', async () => {
  const { client, active } = await serveLambda()
  await active()
  await publish(client, 'blue')
  await client.send(new DeleteFunctionCommand({ FunctionName, Qualifier: '1' }))
  const { Version } = await client.send(new PublishVersionCommand({ FunctionName }))
  expect(Version).toBe('2')
})

test('a version is published for the code that is meant, and is Pending before it can be invoked', async () => {
  const { client, active, lambda } = await serveLambda()
  const { CodeSha256 } = await active()
  const wrong = new PublishVersionCommand({ FunctionName, CodeSha256: '0' })
  expect(await rejectionOf(client.send(wrong))).toBe('InvalidParameterValueException')
  lambda.hold()
  const published = await client.send(new PublishVersionCommand({ FunctionName, CodeSha256 }))
  expect(published).toMatchObject({ Version: '1', State: 'Pending' })
  expect(await rejectionOf(invoke(client, {}, { Qualifier: '1' }))).toBe('ResourceConflictException')
  expect((await invoke(client, {})).error).toBeUndefined()
  await lambda.release()
  expect((await invoke(client, {}, { Qualifier: '1' })).version).toBe('1')
})

test('versions are listed in their order, $LATEST first, in pages', async () => {
  const { client, active } = await serveLambda()
  await active()
  for (let count = 1; count <= 11; count++) await publish(client, `colour ${count}`)
  await client.send(new DeleteFunctionCommand({ FunctionName, Qualifier: '2' }))
  const first = await client.send(new ListVersionsByFunctionCommand({ FunctionName, MaxItems: 3 }))
  expect(first.Versions?.map(({ Version }) => Version)).toEqual(['$LATEST', '1', '3'])
  const rest = await client.send(new ListVersionsByFunctionCommand({ FunctionName, Marker: first.NextMarker }))
  expect(rest.Versions?.map(({ Version }) => Version)).toEqual(['4', '5', '6', '7', '8', '9', '10', '11'])
  expect(rest.NextMarker).toBeUndefined()
})

test('a version is deleted by itself, but not while an alias names it; $LATEST goes with the function', async () => {
  const { client, active, lambda } = await serveLambda()
  await active()
  const [one, two] = [await publish(client, 'blue'), await publish(client, 'green')]
  const RoutingConfig = { AdditionalVersionWeights: { [two]: 0.1 } }
  await client.send(new CreateAliasCommand({ FunctionName, Name: 'live', FunctionVersion: one, RoutingConfig }))
  const remove = (Qualifier: string) => client.send(new DeleteFunctionCommand({ FunctionName, Qualifier }))
  expect(await rejectionOf(remove(one))).toBe('ResourceConflictException')
  expect(await rejectionOf(remove(two))).toBe('ResourceConflictException')
  expect(await rejectionOf(remove('$LATEST'))).toBe('InvalidParameterValueException')
  await client.send(new DeleteAliasCommand({ FunctionName, Name: 'live' }))
  await invoke(client, {}, { Qualifier: one })
  await remove(one)
  expect(lambda.sandboxes('echo')).toEqual([])
  expect(await rejectionOf(invoke(client, {}, { Qualifier: one }))).toBe('ResourceNotFoundException')
  expect(await rejectionOf(remove(one))).toBe('ResourceNotFoundException')
  expect(await colourOf(client, two)).toEqual(['green', two])
})

test('an alias shares invocations between two versions by weight', async () => {
  const dice: number[] = []
  const { client, active } = await serveLambda({ random: () => dice.shift() ?? 1 })
  await active()
  const [one, two] = [await publish(client, 'blue'), await publish(client, 'green')]
  const RoutingConfig = { AdditionalVersionWeights: { [two]: 0.25 } }
  await client.send(new CreateAliasCommand({ FunctionName, Name: 'live', FunctionVersion: one, RoutingConfig }))
  dice.push(0.2499, 0.25, 0.99)
  expect(await colourOf(client, 'live')).toEqual(['green', two])
  expect(await colourOf(client, 'live')).toEqual(['blue', one])
  expect(await colourOf(client, 'live')).toEqual(['blue', one])
  const { Configuration } = await client.send(new GetFunctionCommand({ FunctionName, Qualifier: 'live' }))
  expect(Configuration?.Version).toBe(one)
})

test('an alias moves for who has seen where it stands', async () => {
  const { client, active } = await serveLambda()
  await active()
  const [one, two] = [await publish(client, 'blue'), await publish(client, 'green')]
  const Name = 'live'
  const made = await client.send(
    new CreateAliasCommand({ FunctionName, Name, FunctionVersion: one, Description: 'it' }),
  )
  const { RevisionId } = made
  const shift = { AdditionalVersionWeights: { [two]: 0.5 } }
  const shifted = await client.send(new UpdateAliasCommand({ FunctionName, Name, RevisionId, RoutingConfig: shift }))
  expect(shifted).toMatchObject({ FunctionVersion: one, Description: 'it', RoutingConfig: shift })
  const stale = new UpdateAliasCommand({ FunctionName, Name, RevisionId, FunctionVersion: two })
  expect(await rejectionOf(client.send(stale))).toBe('PreconditionFailedException')
  const to = { FunctionVersion: two, RoutingConfig: { AdditionalVersionWeights: {} }, RevisionId: shifted.RevisionId }
  await client.send(new UpdateAliasCommand({ FunctionName, Name, ...to }))
  const moved = await client.send(new GetAliasCommand({ FunctionName, Name }))
  expect(moved).toMatchObject({ FunctionVersion: two, AliasArn: expect.stringMatching(/:function:echo:live$/) })
  expect(moved.RoutingConfig).toBeUndefined()
  expect(await colourOf(client, 'live')).toEqual(['green', two])
})

test('an alias names published versions of its function, two at most', async () => {
  const { client, active } = await serveLambda()
  await active()
  const [one, two, three] = [await publish(client, 'a'), await publish(client, 'b'), await publish(client, 'c')]
  const alias = (FunctionVersion: string, weights: Record<string, number>, Name = 'live') =>
    rejectionOf(
      client.send(
        new CreateAliasCommand({
          FunctionName,
          Name,
          FunctionVersion,
          RoutingConfig: { AdditionalVersionWeights: weights },
        }),
      ),
    )
  expect(await alias('9', {})).toBe('ResourceNotFoundException')
  expect(await alias(one, { 9: 0.5 })).toBe('ResourceNotFoundException')
  expect(await alias(one, { [two]: 0.1, [three]: 0.1 })).toBe('InvalidParameterValueException')
  expect(await alias(one, { [one]: 0.1 })).toBe('InvalidParameterValueException')
  expect(await alias('$LATEST', { [one]: 0.1 })).toBe('InvalidParameterValueException')
  expect(await alias(one, { [two]: 1.1 })).toBe('ValidationException')
  expect(await alias(one, {}, '12')).toBe('ValidationException')
  expect(await alias(one, {})).toBe('no error')
  expect(await alias(one, {})).toBe('ResourceConflictException')
  expect(await alias('$LATEST', {}, 'newest')).toBe('no error')
  const { Aliases } = await client.send(new ListAliasesCommand({ FunctionName }))
  expect(Aliases?.map(({ Name }) => Name)).toEqual(['live', 'newest'])
  const ofOne = await client.send(new ListAliasesCommand({ FunctionName, FunctionVersion: one }))
  expect(ofOne.Aliases?.map(({ Name }) => Name)).toEqual(['live'])
  await client.send(new DeleteAliasCommand({ FunctionName, Name: 'live' }))
  await client.send(new DeleteAliasCommand({ FunctionName, Name: 'live' }))
  expect(await rejectionOf(client.send(new GetAliasCommand({ FunctionName, Name: 'live' })))).toBe(
    'ResourceNotFoundException',
  )
})

test('a function and an update may be published in one go', async () => {
  const { client, create, push } = await serveLambda()
  expect((await create({ Publish: true })).Version).toBe('1')
  await settled(client)
  const ImageUri = await push({ labels: { is: 'new' } })
  const updated = await client.send(new UpdateFunctionCodeCommand({ FunctionName, ImageUri, Publish: true }))
  expect(updated.Version).toBe('2')
  await waitUntilPublishedVersionActive({ client, ...often }, { FunctionName, Qualifier: '2' })
  const latest = await client.send(new GetFunctionConfigurationCommand({ FunctionName }))
  expect(latest.Version).toBe('$LATEST')
  expect((await invoke(client, {}, { Qualifier: '2' })).result.cwd).toContain(ImageUri.split(':').at(-1))
})
