// The settings as the table of docs/operations/settings.md; a test holds the two together.
import { toFlag, listVariables } from '../../src/cli/settings/read-settings.js'
import type { Setting } from '../../src/cli/settings/setting.js'
import { SETTINGS, type SettingName } from '../../src/cli/settings/settings.js'

/** Flag, environment, default, meaning. */
export function buildSettingRows(): string[][] {
  return (Object.keys(SETTINGS) as SettingName[]).map((name) => {
    const setting = SETTINGS[name]
    const flag = 'isVariableOnly' in setting ? '' : formatCode(toFlag(name))
    const { default: general, demoDefault, devDefault }: Setting<unknown> = setting
    const defaults = [
      general === undefined ? 'none' : formatCode(general),
      ...(demoDefault === undefined ? [] : [`in demo ${formatCode(demoDefault)}`]),
      ...(devDefault === undefined ? [] : [`in dev ${formatCode(devDefault)}`]),
    ]
    const only = setting.commands.length === 1 ? ` Only for \`${setting.commands[0]}\`.` : ''
    return [
      flag,
      listVariables(name).map(formatCode).join(' or '),
      defaults.join(', '),
      `${setting.description}${only}`,
    ]
  })
}

function formatCode(text: string): string {
  return `\`${text}\``
}
