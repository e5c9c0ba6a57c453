"""Stubs of build systems that are not installed: their CMake functions, headers, and the crate cc."""

from __future__ import annotations

from pathlib import Path

ZEPHYR = """
project(stub C)
add_executable(app)
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/prj.conf lines REGEX "=y$")
foreach(line ${lines})
  string(REPLACE "=y" "" symbol ${line})
  set(${symbol} y)
endforeach()
macro(zephyr_include_directories)
  foreach(folder ${ARGN})
    target_include_directories(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endforeach()
endmacro()
macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${name})
  add_library(${name} STATIC "")
  target_link_libraries(app PRIVATE ${name} m)
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:app,INCLUDE_DIRECTORIES>)
endmacro()
macro(zephyr_library_sources)
  foreach(file ${ARGN})
    target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
endmacro()
macro(zephyr_library_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endmacro()
target_include_directories(app PRIVATE ${CMAKE_CURRENT_LIST_DIR}/include)
foreach(module ${ZEPHYR_EXTRA_MODULES})
  file(READ ${module}/zephyr/module.yml yml)
  if(NOT yml MATCHES "cmake: zephyr" OR NOT EXISTS ${module}/zephyr/Kconfig)
    message(FATAL_ERROR "no module of Zephyr")
  endif()
  add_subdirectory(${module}/zephyr module)
endforeach()
"""
IDF = """
function(idf_component_register)
  cmake_parse_arguments(it "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS" ${ARGN})
  add_library(${COMPONENT_LIB} STATIC ${it_SRCS})
  target_include_directories(${COMPONENT_LIB} PUBLIC ${it_INCLUDE_DIRS} PRIVATE ${it_PRIV_INCLUDE_DIRS})
endfunction()
macro(project name)
  _project(${name} C)
  set(COMPONENT_LIB component)
  add_subdirectory(${EXTRA_COMPONENT_DIRS} component)
  set(COMPONENT_LIB main)
  add_subdirectory(main)
  target_link_libraries(main PRIVATE component m)
  file(WRITE ${CMAKE_BINARY_DIR}/start.c "void app_main(void); int main(void) { app_main(); return 0; }")
  add_executable(app ${CMAKE_BINARY_DIR}/start.c)
  target_link_libraries(app PRIVATE main)
endmacro()
"""
CUBE = """
cmake_minimum_required(VERSION 3.16)
project(cube C)
add_subdirectory(library)
file(WRITE ${CMAKE_BINARY_DIR}/main.c
  "#include \\"NAME_example.h\\"\\nint main(void) { return NAME_example() != 0u; }")
add_executable(app ${CMAKE_BINARY_DIR}/main.c)
target_link_libraries(app PRIVATE NAME)
"""
ARDUINO = """
#include <stdint.h>
#include <stdio.h>
struct {
    void begin(unsigned long) {}
    operator bool() const { return true; }
    void print(const char *text) { fputs(text, stdout); }
    void print(uint32_t number) { printf("%u", number); }
    void println(const char *text) { puts(text); }
    void println(uint32_t number) { printf("%u\\n", number); }
} Serial;
static void delay(unsigned long) {}
void setup();
void loop();
int main() { setup(); loop(); }
"""
CC = """
pub struct Build(std::process::Command, Vec<String>);
impl Build {
    pub fn new() -> Self { Build(std::process::Command::new("gcc"), Vec::new()) }
    pub fn files<'a>(&mut self, files: impl IntoIterator<Item = &'a str>) -> &mut Self {
        self.1.extend(files.into_iter().map(String::from));
        self
    }
    pub fn include(&mut self, folder: &str) -> &mut Self { self.0.arg(format!("-I{folder}")); self }
    pub fn flag(&mut self, flag: &str) -> &mut Self { self.0.arg(flag); self }
    pub fn opt_level(&mut self, level: u32) -> &mut Self { assert!(level < 4); self }
    pub fn compile(&mut self, name: &str) {
        let out = std::env::var("OUT_DIR").unwrap();
        let root = std::env::current_dir().unwrap();
        self.0.args(["-Wall", "-Wextra", "-Werror", "-fPIC", "-c"]).current_dir(&out);
        for file in &self.1 { self.0.arg(root.join(file)); }
        self.0.arg(format!("-I{}", root.join("csrc").display()));
        self.0.arg(format!("-I{}", root.join("csrc/include").display()));
        assert!(self.0.status().unwrap().success());
        let objects = std::fs::read_dir(&out).unwrap().map(|it| it.unwrap().path());
        let objects: Vec<_> = objects.filter(|it| it.extension().is_some_and(|end| end == "o")).collect();
        let archive = format!("{out}/lib{name}.a");
        assert!(std::process::Command::new("ar").arg("rcs").arg(archive).args(objects).status().unwrap().success());
        println!("cargo:rustc-link-search=native={out}");
        println!("cargo:rustc-link-lib=static={name}");
    }
}
"""
VECTORS = """
void _start(void);
static void reset(void)
{
    *(volatile unsigned *)0xe000ed88 |= 0xfu << 20; /* the FPU */
    _start();
}
__attribute__((section(".vectors"))) void *const vectors[] = {(void *)0x20100000, (void *)reset};
"""


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    """These files below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
