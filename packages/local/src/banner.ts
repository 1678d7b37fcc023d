import { SetupStatus } from '@platform/contract/setup'

const exampleSetup = {
  platformName: 'My platform',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: 'admin',
  adminEmail: 'admin@example.com',
  adminPassword: 'choose-a-password',
}

/** Returns the lines to print after the start. */
export async function banner(apiUrl: string): Promise<string[]> {
  const response = await fetch(`${apiUrl}/api/v1/setup/status`)
  const status = SetupStatus.safeParse(await response.json())
  if (!response.ok || !status.success || status.data.setupComplete) return [`The portal: ${apiUrl}/`]
  const body = JSON.stringify(exampleSetup).slice(0, -1)
  return [
    `Setup is not complete. Open ${apiUrl}/ in a browser.`,
    'To print the initial admin token, run in another terminal in this folder:',
    '  npm run -s admin-token',
    'Without a browser, adapt the values and run:',
    `  curl ${apiUrl}/api/v1/setup/complete -H 'content-type: application/json' \\`,
    `    -d '${body},"initialAdminToken":"'"$(npm run -s admin-token)"'"}'`,
  ]
}
