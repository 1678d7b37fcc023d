import config from './vitest.config.ts'
const c: any = config
for (const p of c.test.projects) p.test.setupFiles = ['/tmp/cpu/setup.ts', ...(p.test.setupFiles ?? [])]
export default c
