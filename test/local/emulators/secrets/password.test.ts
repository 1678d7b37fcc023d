import { GetRandomPasswordCommand, InvalidParameterException } from '@aws-sdk/client-secrets-manager'
import { describe, expect, test } from 'vitest'
import { serveSecrets } from './support.ts'

describe('a random password', () => {
  test('has the length asked for and every type of character', async () => {
    const { client } = await serveSecrets()
    const { RandomPassword } = await client.send(new GetRandomPasswordCommand({ PasswordLength: 20 }))
    expect(RandomPassword).toHaveLength(20)
    for (const type of [/[a-z]/, /[A-Z]/, /\d/, /[^\w\s]/]) expect(RandomPassword).toMatch(type)
  })

  test('leaves out what is excluded', async () => {
    const { client } = await serveSecrets()
    const command = new GetRandomPasswordCommand({ ExcludePunctuation: true, ExcludeCharacters: '0Ol1' })
    expect((await client.send(command)).RandomPassword).toMatch(/^[A-NP-Za-km-z2-9]{32}$/)
  })

  test('must be long enough for what it must include', async () => {
    const { client } = await serveSecrets()
    const command = new GetRandomPasswordCommand({ PasswordLength: 3 })
    await expect(client.send(command)).rejects.toBeInstanceOf(InvalidParameterException)
  })
})
