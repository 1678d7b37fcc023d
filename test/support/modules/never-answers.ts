import { createServer } from 'node:http'

/** Takes every request and answers none. */
createServer(() => {}).listen(process.env['PLATFORM_SOCKET'])
