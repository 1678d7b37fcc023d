import {
  DeleteSecretCommand,
  DescribeSecretCommand,
  InvalidParameterException,
  InvalidRequestException,
  ResourceExistsException,
  ResourceNotFoundException,
  RestoreSecretCommand,
  RotateSecretCommand,
} from '@aws-sdk/client-secrets-manager'
import { describe, expect, test } from 'vitest'
import { create, get, namesOf, serveSecrets, valueOf } from './support.ts'

const millisecondsPerDay = 86_400_000

test('a name is taken once', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(create(client, 'key')).rejects.toBeInstanceOf(ResourceExistsException)
})

describe('deleting', () => {
  test('hides a secret, which can be restored with its value', async () => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    const { DeletionDate } = await client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
    const { DeletedDate } = await client.send(new DescribeSecretCommand({ SecretId: 'key' }))
    expect(DeletionDate!.getTime() - DeletedDate!.getTime()).toBe(7 * millisecondsPerDay)
    await expect(get(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
    await expect(create(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
    expect(await namesOf(client)).toEqual([])
    expect(await namesOf(client, { IncludePlannedDeletion: true })).toEqual(['key'])

    await client.send(new RestoreSecretCommand({ SecretId: 'key' }))
    expect(await valueOf(client, 'key')).toBe('first value')
  })

  test('frees the name once the recovery window is over', async () => {
    let nowMs = Date.now()
    const { client } = await serveSecrets({ nowMs: () => nowMs })
    await create(client, 'key')
    await client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
    nowMs += 7 * millisecondsPerDay + 1
    const restore = client.send(new RestoreSecretCommand({ SecretId: 'key' }))
    await expect(restore).rejects.toBeInstanceOf(ResourceNotFoundException)
    await create(client, 'key', 'another value')
    expect(await valueOf(client, 'key')).toBe('another value')
  })

  test('at once frees the name at once, and may be repeated', async () => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    const command = new DeleteSecretCommand({ SecretId: 'key', ForceDeleteWithoutRecovery: true })
    await client.send(command)
    await client.send(command)
    await create(client, 'key', 'another value')
    expect(await valueOf(client, 'key')).toBe('another value')
  })

  test.each([
    [{ RecoveryWindowInDays: 7, ForceDeleteWithoutRecovery: true }, InvalidParameterException.name],
    [{ RecoveryWindowInDays: 6 }, 'ValidationException'],
    [{ SecretId: 'missing' }, ResourceNotFoundException.name],
  ])('with %o is refused', async (input, name) => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    await expect(client.send(new DeleteSecretCommand({ SecretId: 'key', ...input }))).rejects.toMatchObject({ name })
    expect(await valueOf(client, 'key')).toBe('first value')
  })
})

test('an action that is not supported is named as such', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(client.send(new RotateSecretCommand({ SecretId: 'key' }))).rejects.toMatchObject({
    name: 'UnknownOperationException',
  })
})
