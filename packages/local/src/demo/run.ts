import type { PlatformOptions } from '../platform.ts'
import type { Settings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { keepMarker, openDemo } from './folder.ts'
import { recordOwnProcess } from './process-record.ts'
import { DemoRelays, platformRecord } from './relays.ts'
import { seedDemo } from './seed.ts'
import { createSignInLink, type SignInLink } from './sign-in-link.ts'

interface PreparedDemo {
  settings: Settings
  options: PlatformOptions
  /** Fills the started platform. Returns the lines to print, of which the last one contains the sign-in link. */
  open: (url: string) => Promise<string[]>
  stop: () => Promise<void>
}

/**
 * Creates the folder of the demo if it does not exist. Throws `StartError` if PLAT_DATA_DIR is set, the host is not
 * loopback, or the folder has other content.
 */
export async function prepareDemo(givenSettings: Settings): Promise<PreparedDemo> {
  if (process.env['PLAT_DATA_DIR']) {
    throw new StartError('The demo has a folder of its own, .platform-demo. Unset PLAT_DATA_DIR to start it.')
  }
  if (!['127.0.0.1', '::1', 'localhost'].includes(givenSettings.host)) {
    throw new StartError('The demo listens on this machine only. Unset PLAT_HOST to start it.')
  }
  const demo = await openDemo()
  let relays: DemoRelays | undefined
  let link: SignInLink | undefined

  const open = async (url: string): Promise<string[]> => {
    relays = new DemoRelays(demo, url)
    const problem = await seedDemo(demo, url, relays).then(
      () => '',
      (error: unknown) => ` It is incomplete: ${error instanceof Error ? error.message : String(error)}`,
    )
    link = createSignInLink(demo, url)
    return [
      `This is a demo: Ctrl-C stops it, npm run demo:clean removes it.${problem} This link signs in once, within 10 minutes:`,
      `Demo ready at ${url}${link.path}`,
    ]
  }
  // The claim of the data folder ensures that no other platform of this demo is running.
  const onClaim = () => {
    keepMarker(demo)
    recordOwnProcess(platformRecord(demo))
  }
  const settings = { ...givenSettings, dataDir: demo.dataDir, isDemo: true }
  return {
    settings,
    options: { intercept: async (request, path) => link?.serve(request, path), onClaim },
    open,
    stop: async () => relays?.stop(),
  }
}
