/** Serves one part of the platform in a process that tests can kill: `node serve.ts KIND DATA_DIR [FUNCTIONS_DIR]`. */
const [kind = '', dataDir = '', functionsDir = ''] = process.argv.slice(2)

const servers: Record<string, () => Promise<unknown>> = {
  dynamodb: async () =>
    (await (await import('@platform/local/emulators/dynamodb/server')).startDynamoDb({ dataDir })).url,
  sqs: async () => (await (await import('@platform/local/emulators/sqs/server')).startSqs({ dataDir })).url,
  secrets: async () =>
    (await (await import('@platform/local/emulators/secrets/server')).startSecretsManager({ dataDir })).url,
  registry: async () => {
    const { registryIn } = await import('../registry/support.ts')
    return (await registryIn(dataDir)).host
  },
  platform: async () => {
    const { startPlatform } = await import('@platform/local/platform')
    const { parseSettings } = await import('@platform/local/settings')
    const { stopOnSignals } = await import('@platform/local/signals')
    const { shortTestSettings } = await import('../../support/long.ts')
    const settings = parseSettings({ PLAT_PORT: '0', PLAT_REGISTRY_PORT: '0', ...shortTestSettings })
    const starting = startPlatform({ ...settings, dataDir, functionsDir })
    stopOnSignals(async () => (await starting).stop())
    const { url, updateSupervisor } = await starting
    return { url, updateSupervisor }
  },
}
console.log(`Ready at ${JSON.stringify(await servers[kind]?.())}`)
