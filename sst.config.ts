/// <reference path="./.sst/platform/config.d.ts" />

export default $config({
  app({ stage }) {
    const isProduction = stage === 'production'
    return {
      name: 'platform',
      home: 'aws',
      version: '4.17.1',
      removal: isProduction ? 'retain' : 'remove',
      protect: isProduction,
      providers: { aws: { version: '7.20.0' } },
    }
  },
  async run() {
    const { api } = await import('./infra/gateway')
    const { initialAdminToken } = await import('./infra/secrets')
    await import('./infra/api')
    await import('./infra/tasks')
    await import('./infra/alarms')
    return { api: api.url, initialAdminTokenSecret: initialAdminToken.name }
  },
})
