/** `npm run -s registry-password`: prints only the password of the embedded registry's user `platform`. */
import { parseCommandLine } from '../command-line.ts'
import { readRegistryPassword } from '../generated-secrets.ts'
import { parseSettings } from '../settings.ts'

parseCommandLine(
  `npm run -s registry-password

Prints the password of the user platform of the embedded registry.`,
  {},
)
try {
  const { dataDir } = parseSettings(process.env)
  console.log(
    await readRegistryPassword(dataDir).catch((cause: unknown) => {
      const nextStep = 'Start it with: npm start. If it uses another folder, set PLAT_DATA_DIR.'
      throw new Error(`No platform has run on the data in ${dataDir}. ${nextStep}`, { cause })
    }),
  )
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
