import { createServer } from 'node:http'

/** Never responds to a request. */
createServer(() => {}).listen(process.env['PLATFORM_SOCKET'])
