import assert from 'node:assert/strict'
import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateSecretCommand, ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { PutCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { inPlatform, own } from './act.ts'
import { swept, sweeps } from './sweep.ts'

/** Secrets of identity providers that nothing uses any more. */

export const sweepSecrets = own(
  'the sweep removes a secret that nothing has used for ten minutes',
  async (scene) => {
    const { secretsUrl, dynamoDbUrl, accessKeyId } = scene.simulator.cloud
    const { environment } = scene.simulator.functions[0] ?? {}
    const Name = `${environment?.['PLAT_SECRET_IDENTITY_PREFIX']}/${crypto.randomUUID()}`
    const [secrets, table] = [
      new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId)),
      new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId)),
    ]
    await secrets.send(new CreateSecretCommand({ Name, SecretString: '{}' }))
    const note = { ...keys.orphanedSecret(Name), name: Name, ...keys.due(Name, Date.now()) }
    await table.send(new PutCommand({ TableName: environment?.['PLAT_TABLE'], Item: note }))
    await swept(scene, 'it is gone', async () => !(await secretNames(secrets)).includes(Name))
    for (const client of [secrets, table]) client.destroy()
  },
  { breaks: sweeps },
)

async function secretNames(client: SecretsManagerClient): Promise<(string | undefined)[]> {
  const { SecretList = [] } = await client.send(new ListSecretsCommand({ MaxResults: 100 }))
  return SecretList.map(({ Name }) => Name)
}

export const secretGoes = inPlatform(
  own('with an identity provider its secret goes', async ({ simulator, platform }) => {
    const admin = await platform.admin
    const path = '/api/v1/platform/identity/providers'
    const facts = { clientId: 'platform', clientSecret: 'secret', enabled: false }
    const provider = { type: 'CloudDirectory', tenantId: crypto.randomUUID(), ...facts }
    const { id } = expectStatus(await admin.post(path, provider), 201)
    const secrets = new SecretsManagerClient(clientSettings(simulator.cloud.secretsUrl, simulator.cloud.accessKeyId))
    const isThere = async () => (await secretNames(secrets)).some((name) => name?.includes(id))
    assert.ok(await isThere())
    expectStatus(await admin.delete(`${path}/${id}`), 204)
    assert.ok(!(await isThere()))
    secrets.destroy()
  }),
)
