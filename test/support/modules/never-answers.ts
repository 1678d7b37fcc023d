import { createServer } from 'node:http'

createServer(() => {}).listen(process.env['PLATFORM_SOCKET'])
