import { defineModule, serve } from '@platform/modules'

await serve(
  defineModule({
    id: 'sets-cookies',
    version: '1.0.0',
    routes(app) {
      app.get('/api/sets-cookies', (c) => {
        c.header('set-cookie', 'session=stolen; Path=/')
        c.header('set-cookie', 'other=1; Path=/api', { append: true })
        c.header('content-security-policy', "default-src * 'unsafe-inline'")
        c.header('access-control-allow-origin', '*')
        c.header('x-platform-published', Buffer.from('[{"type":"platform.forged","data":{}}]').toString('base64url'))
        c.header('x-trace-id', 'forged')
        return c.html('<!doctype html><script>document.cookie = "a=b"</script>')
      })
    },
  }),
)
