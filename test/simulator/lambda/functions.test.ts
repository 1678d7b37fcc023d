import {
  CreateFunctionCommand,
  type CreateFunctionCommandInput,
  DeleteFunctionCommand,
  GetFunctionCommand,
  GetFunctionConfigurationCommand,
  ListFunctionsCommand,
  ListTagsCommand,
  paginateListFunctions,
  TagResourceCommand,
  UntagResourceCommand,
} from '@aws-sdk/client-lambda'
import { thisPlatform } from '@platform/oci/image'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { imageFunction, invoke, rejectionOf, serveLambda } from './support.ts'

test('a function is described as it was made, and is Pending until it can be invoked', async () => {
  const { client, create, push, lambda } = await serveLambda()
  lambda.hold()
  const Environment = { Variables: { COLOUR: 'blue' } }
  const made = await create({ Description: 'what it is for', Timeout: 60, Environment, Tags: { stage: 'dev' } })
  const uri = await push()
  const described = {
    FunctionName: 'echo',
    FunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:echo',
    Version: '$LATEST',
    PackageType: 'Image',
    CodeSha256: uri.split('sha256:')[1],
    Description: 'what it is for',
    Timeout: 60,
    MemorySize: 128,
    Environment,
    Role: made.Role,
  }
  expect(made).toMatchObject({ ...described, State: 'Pending', StateReasonCode: 'Creating' })
  expect(made.LastUpdateStatus).toBeUndefined()
  await lambda.release()
  const found = await client.send(new GetFunctionCommand({ FunctionName: 'echo' }))
  expect(found.Configuration).toMatchObject({ ...described, State: 'Active', LastUpdateStatus: 'Successful' })
  expect(found.Configuration?.StateReason).toBeUndefined()
  expect(found.Code).toMatchObject({ RepositoryType: 'ECR', ImageUri: uri, ResolvedImageUri: uri })
  expect(found.Tags).toEqual({ stage: 'dev' })
})

test('a tag is resolved once, when the function is made', async () => {
  const { client, registry, push, active } = await serveLambda()
  const [repository = '', digest = ''] = (await push()).replace('registry.test/', '').split('@')
  registry.tagged.set(`${repository} latest`, digest)
  await active({ Code: { ImageUri: `registry.test/${repository}:latest` } })
  registry.tagged.set(`${repository} latest`, (await push({ labels: { other: 'one' } })).split('@')[1] ?? '')
  const { Code } = await client.send(new GetFunctionCommand({ FunctionName: 'echo' }))
  expect(Code?.ResolvedImageUri).toBe(`registry.test/${repository}@${digest}`)
})

test('a name is taken once, also by two at once', async () => {
  const { create, registry } = await serveLambda()
  const manifest = registry.manifest.bind(registry)
  const both = Promise.withResolvers<void>()
  let count = 0
  registry.manifest = async (...asked) => {
    if (++count === 2) both.resolve()
    await both.promise
    return manifest(...asked)
  }
  const answers = await Promise.all([rejectionOf(create()), rejectionOf(create())])
  expect(answers.toSorted()).toEqual(['ResourceConflictException', 'no error'])
  expect(await rejectionOf(create())).toBe('ResourceConflictException')
})

test('an image that is an index, or that is not there, makes no function', async () => {
  const { client, create, push, registry } = await serveLambda()
  const member = (await push()).split('@')[1] ?? ''
  const index = {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [{ ...(await registry.resolve('modules/echo', member)), platform: thisPlatform() }],
  }
  const bytes = Buffer.from(JSON.stringify(index))
  await registry.putManifest('modules/echo', 'both', bytes, mediaTypes.index)
  for (const name of ['echo:both', 'echo:nothing', `echo@sha256:${'0'.repeat(64)}`, 'ECHO']) {
    const ImageUri = `registry.test/modules/${name}`
    expect(await rejectionOf(create({ Code: { ImageUri } }))).toBe('InvalidParameterValueException')
  }
  expect((await client.send(new ListFunctionsCommand({}))).Functions).toEqual([])
})

test.each<[name: string, input: Partial<CreateFunctionCommandInput>]>([
  ['ValidationException', { FunctionName: 'x'.repeat(65) }],
  ['ValidationException', { FunctionName: 'a name' }],
  ['ValidationException', { Timeout: 901 }],
  ['ValidationException', { MemorySize: 127 }],
  ['ValidationException', { Role: 'modules' }],
  ['ValidationException', { Description: 'x'.repeat(257) }],
  ['ValidationException', { Environment: { Variables: { AWS_REGION: 'mars-1' } } }],
  ['ValidationException', { Environment: { Variables: { LONG: 'x'.repeat(4096) } } }],
  ['InvalidParameterValueException', { FunctionName: 'echo:1' }],
  ['InvalidParameterValueException', { Runtime: 'nodejs24.x' }],
])('%s for %o', async (name, input) => {
  const { create } = await serveLambda()
  expect(await rejectionOf(create(input))).toBe(name)
})

test('a function whose image cannot be unpacked has Failed, and says why', async () => {
  const { client, push, dropLayers } = await serveLambda()
  const whole = await push({ labels: { of: 'another' } })
  await dropLayers(whole)
  await client.send(new CreateFunctionCommand(imageFunction(whole)))
  const state = async () => client.send(new GetFunctionConfigurationCommand({ FunctionName: 'echo' }))
  await expect.poll(async () => (await state()).State).toBe('Failed')
  expect(await state()).toMatchObject({
    StateReasonCode: 'InvalidImage',
    StateReason: expect.stringContaining('sha256'),
  })
  expect(await rejectionOf(invoke(client, {}))).toBe('ResourceConflictException')
})

test('functions are listed by name in pages of at most 50, without a gap when some go meanwhile', async () => {
  const { client, create } = await serveLambda()
  const names = Array.from({ length: 60 }, (_, index) => `echo-${String(index).padStart(2, '0')}`)
  for (const FunctionName of names.toReversed()) await create({ FunctionName })
  const first = await client.send(new ListFunctionsCommand({ MaxItems: 1000 }))
  expect(first.Functions?.map(({ FunctionName }) => FunctionName)).toEqual(names.slice(0, 50))
  await client.send(new DeleteFunctionCommand({ FunctionName: 'echo-49' }))
  const second = await client.send(new ListFunctionsCommand({ Marker: first.NextMarker }))
  expect(second.Functions?.map(({ FunctionName }) => FunctionName)).toEqual(names.slice(50))
  expect(second.NextMarker).toBeUndefined()
  const counts: number[] = []
  for await (const { Functions } of paginateListFunctions({ client, pageSize: 20 }, {})) counts.push(Functions!.length)
  expect(counts).toEqual([20, 20, 19])
})

test('a function is named by its name, its ARN or a part of it', async () => {
  const { client, active } = await serveLambda()
  const { FunctionArn = '' } = await active({ Publish: true })
  for (const FunctionName of [
    'echo',
    'echo:1',
    FunctionArn,
    FunctionArn.slice('arn:aws:lambda:us-east-1:'.length),
    '000000000000:function:echo',
  ]) {
    const { Configuration } = await client.send(new GetFunctionCommand({ FunctionName }))
    expect(Configuration?.FunctionName).toBe('echo')
  }
  const other = new GetFunctionCommand({ FunctionName: 'echo:1', Qualifier: '$LATEST' })
  expect(await rejectionOf(client.send(other))).toBe('InvalidParameterValueException')
})

test('a deleted function is gone with its sandboxes, and its name is free', async () => {
  const { client, active, lambda } = await serveLambda()
  await active()
  const first = await invoke(client, {})
  const [sandbox] = lambda.sandboxes('echo')
  await client.send(new DeleteFunctionCommand({ FunctionName: 'echo' }))
  expect(sandbox?.hasEnded).toBe(true)
  for (const call of [DeleteFunctionCommand, GetFunctionCommand, GetFunctionConfigurationCommand]) {
    expect(await rejectionOf(client.send(new call({ FunctionName: 'echo' }) as any))).toBe('ResourceNotFoundException')
  }
  await active()
  expect((await invoke(client, {})).result.instance).not.toBe(first.result.instance)
})

test('tags are added, replaced and removed by ARN', async () => {
  const { client, create } = await serveLambda()
  const { FunctionArn: Resource } = await create({ Tags: { stage: 'dev', owner: 'me' } })
  await client.send(new TagResourceCommand({ Resource, Tags: { stage: 'production', colour: 'blue' } }))
  await client.send(new UntagResourceCommand({ Resource, TagKeys: ['owner', 'colour'] }))
  expect((await client.send(new ListTagsCommand({ Resource }))).Tags).toEqual({ stage: 'production' })
  await client.send(new UntagResourceCommand({ Resource, TagKeys: ['stage'] }))
  expect((await client.send(new ListTagsCommand({ Resource }))).Tags).toEqual({})
  const Tags = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`tag-${index}`, '']))
  expect(await rejectionOf(client.send(new TagResourceCommand({ Resource, Tags })))).toBe(
    'InvalidParameterValueException',
  )
})

test('requests have to be signed, with the right access key where one is given', async () => {
  const { lambda, client } = await serveLambda({ accessKeyId: 'another' })
  expect((await fetch(`${lambda.url}/2015-03-31/functions`)).status).toBe(403)
  expect(await rejectionOf(client.send(new ListFunctionsCommand({})))).toBe('UnrecognizedClientException')
})

test('a call that this stand-in does not know is refused by name', async () => {
  const { lambda } = await serveLambda()
  const headers = { authorization: 'AWS4-HMAC-SHA256 Credential=test/20260101/x/lambda/aws4_request' }
  const answer = await fetch(`${lambda.url}/2015-03-31/event-source-mappings`, { headers })
  expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([404, 'UnknownOperationException'])
})
